"""`windlass reject`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from windlass import ExecutionHandle, Pipeline, RejectItem, Windlass

MILL = """
from tests.cli.test_reject import declare
from windlass import Windlass

app = Windlass()
declare(app)
"""
BAD: set[int] = set()


def declare(app: Windlass, *, keeps: bool = True) -> Pipeline:
    mill = app.pipeline("mill", version="1", include_payload=keeps)

    @mill.expand
    def grains(numbers: list[int]) -> Iterator[int]:
        return iter(numbers)

    @mill.step
    def grind(number: int) -> int:
        if number in BAD:
            raise RejectItem(f"grain {number} is a \x1b[31mstone")
        return number

    return mill


@pytest.fixture
def mill(desk) -> Iterator[Pipeline]:
    (Path.cwd() / "mill.py").write_text(MILL)
    BAD.update({1, 2})
    yield declare(desk.app)
    BAD.clear()


def ground(desk, mill: Pipeline, *numbers: int) -> ExecutionHandle:
    with desk.app.worker():
        run = mill.submit(list(numbers))
        run.result(60)
    return run


def test_rejects_are_listed_for_pipes_programs_and_people(desk, mill: Pipeline):
    """P5.4: with their envelope; what an error says does not act on the terminal."""
    run = ground(desk, mill, 0, 1)
    (line,) = desk.stdout("reject", "list").splitlines()
    cells = line.split("\t")
    assert cells[:4] == [str(run.id), "mill", "grind", "1"]
    assert (len(cells[4]), cells[5]) == (64, "0")
    (item,) = desk.read("reject", "list", "--pipeline", "mill", "--step", "grind", "--since", "1h")["items"]
    assert (item["execution_id"], item["reject_scope"], item["item_count"]) == (str(run.id), "ITEM", 1)
    assert item["payload"] == 1
    assert "\x1b[31mstone" not in desk.drawn("reject", "list")
    assert desk.read("reject", "list", "--tenant", "other")["items"] == []


def test_a_page_shows_the_command_for_the_next_page(desk, mill: Pipeline):
    """P5.4: with a cursor."""
    ground(desk, mill, 1, 2)
    page = desk.read("reject", "list", "--limit", "1")
    rest = desk.read("reject", "list", "--cursor", page["next_cursor"])
    assert len({page["items"][0]["id"], rest["items"][0]["id"]}) == 2


def test_groups_show_their_share(desk, mill: Pipeline):
    """P5.4: by fingerprint, error class or step."""
    ground(desk, mill, 1, 1, 1, 2)
    lines = [line.split("\t") for line in desk.stdout("reject", "groups").splitlines()]
    assert [(cells[1], cells[2]) for cells in lines] == [("3", "0.7500"), ("1", "0.2500")]
    (line,) = desk.stdout("reject", "groups", "--by", "step").splitlines()
    assert line.split("\t")[:3] == ["grind", "4", "1.0000"]
    assert [group["key"] for group in desk.read("reject", "groups", "--by", "error_class")["items"]] == ["RejectItem"]
    assert "75%" in desk.drawn("reject", "groups")


def test_items_are_redriven_in_an_application_that_declares_the_pipeline(desk, mill: Pipeline):
    """P5.4: first with a dry run, then after a question."""
    ground(desk, mill, 1, 2)
    tried = desk.read("reject", "redrive", "--dry-run")
    assert (tried["selected"], tried["redriven"]) == (2, 0)
    assert len(desk.stdout("reject", "redrive", "--dry-run", WINDLASS_APP="mill:app").splitlines()) == 2
    done = desk.stdout("reject", "redrive", "--yes", "--note", "sifted", "--rate", "50", WINDLASS_APP="mill:app")
    first, *executions = done.splitlines()
    assert (first, len(executions)) == ("re-driven 2 rejects", 2)
    BAD.clear()
    with desk.app.worker():
        for line in executions:
            assert desk.app.executions.handle(line.split()[-1]).result(60) in ([1], [2])
    assert desk.run("reject", "redrive", "--yes", WINDLASS_APP="mill:app").output.strip() == "no rejects fit"


def test_a_reject_that_cannot_be_redriven_is_named(desk, mill: Pipeline):
    """P5.4: a pipeline that this application does not declare."""
    ground(desk, mill, 1)
    output = desk.stdout("reject", "redrive", "--yes", code=1)
    assert "is not declared in this application" in output


def test_a_redrive_without_payloads_names_the_option(desk):
    """P5.4: include_payload."""
    BAD.add(1)
    ground(desk, declare(desk.app, keeps=False), 1)
    BAD.clear()
    result = desk.run("reject", "redrive", "--yes")
    assert (result.exit_code, "include_payload" in result.output) == (1, True)
