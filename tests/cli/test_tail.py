"""`windlass job tail`: the log lines of a job, and following it to its end."""

import json
import re

import pytest

from tests.cli.terminal import Terminal

STEPS = """
import asyncio
from pathlib import Path

from windlass import JobContext, Windlass

app = Windlass()
folder = Path(__file__).parent


@app.job
async def import_rows(rows: int, fail: bool = False) -> None:
    context = JobContext.current()
    context.log.info("opened the file")
    context.progress(rows / 2, rows, "half of it")
    while not (folder / "gate").exists():
        await asyncio.sleep(0.02)
    context.log.warning("closed the file")
    if fail:
        raise ValueError("the last row is damaged")
"""


@pytest.fixture
def importing(commands, shop_on):
    """A worker whose jobs stand still at half way until the gate is opened, and a way to enqueue them."""
    (commands.folder / "shop.py").write_text(STEPS)
    commands.run("migrate", "shop:app")
    commands.start("worker", "shop:app").says("^ready")
    return shop_on(commands.url)


def test_kept_lines_and_the_outcome(desk):
    handle = desk.export.enqueue(10)
    desk.work_off(handle)
    line, outcome = [text.split("\t") for text in desk.stdout("job", "tail", handle.id).splitlines()]
    assert line[1:] == ["1", "WARNING", "windlass.job", "half of it"]
    assert outcome[1:4] == ["1", "SUCCEEDED", ""]
    assert re.fullmatch(r"at attempt 1 in \d+ ms", outcome[4])
    output = desk.read("job", "tail", handle.id)
    assert output["next_cursor"] is None
    assert [(line["text"], line["level"], line["attempt"]) for line in output["items"]] == [
        ("half of it", "WARNING", 1)
    ]


def test_the_exit_code_is_the_outcome(desk):
    (failed,) = desk.failed()
    assert desk.stdout("job", "tail", failed, code=1).endswith(
        "FAILED\t\tnon_retryable: DoNotRetry: card of invoice 0 was declined\n"
    )
    assert desk.stdout("job", "tail", "--follow", failed, code=1)
    assert desk.read("job", "tail", failed, code=1)["items"] == []
    waiting = desk.charge.using(delay=60).enqueue(1)
    assert "\tPENDING\t\tdue " in desk.stdout("job", "tail", waiting.id)
    waiting.cancel()
    assert "\tCANCELED\t" in desk.stdout("job", "tail", waiting.id, code=1)


def test_tail_follows_a_job_to_its_end_line_by_line(commands, importing):
    handle = importing.enqueue("import_rows", 10)
    tail = commands.start("job", "tail", "--follow", str(handle.id), "-a", "shop:app")
    tail.says(r"Z\t1\tPROGRESS\t\t50 %, 5 of 10, half of it$")
    tail.says(r"Z\t1\tINFO\twindlass\.job\topened the file$")
    assert tail.process.poll() is None
    (commands.folder / "gate").touch()
    assert tail.exit_code() == 0
    *_, line, outcome = tail.printed.splitlines()
    assert line.endswith("\t1\tWARNING\twindlass.job\tclosed the file")
    assert "\t1\tSUCCEEDED\t" in outcome


def test_programs_get_an_object_per_line(commands, importing):
    handle = importing.enqueue("import_rows", 10, True)
    tail = commands.start("job", "tail", "-f", "--json", str(handle.id), "-a", "shop:app")
    tail.says('"kind":"progress"')
    (commands.folder / "gate").touch()
    assert tail.exit_code() == 1
    output = [json.loads(line) for line in tail.printed.splitlines()]
    texts = [one["line"]["text"] for one in output if one["kind"] == "line"]
    assert texts == ["opened the file", "closed the file"]
    assert output[-1]["kind"] == "job"
    assert output[-1]["job"]["error"] == "ValueError: the last row is damaged"


def test_people_see_a_live_bar(commands, importing):
    handle = importing.enqueue("import_rows", 10)
    screen = Terminal(commands.folder, commands.url, "job", "tail", "--follow", str(handle.id), columns=100)
    screen.shows(r"\d\d:\d\d:\d\d  INFO +opened the file")
    screen.shows("RUNNING ━+[╺╸]?━* 50 %, 5 of 10, half of it")
    (commands.folder / "gate").touch()
    assert screen.exit_code() == 0
    assert re.search(r"WARNING +closed the file.*[\r\n]SUCCEEDED  at attempt 1 in ", screen.text, re.DOTALL)


def test_an_unknown_job_is_an_error(desk):
    result = desk.run("job", "tail", "-f", "00000000-0000-7000-8000-000000000000")
    assert result.exit_code == 1
    assert "no job has the id" in result.stderr
