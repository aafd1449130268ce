"""What `windlass worker` and the commands that look write about failures, on a terminal and for programs."""

import json
import logging
import re

from tests.cli.commands import Commands
from tests.cli.desk import Desk
from windlass.cli.logs import PlainFormatter

FORGED = "00:00:00 INFO    windlass.worker: forged line"
EVIL = f"no user '\x1b]0;owned\x07\x1b[2J\x9b1m\u202e'\n{FORGED}"

EVIL_APP = f"""
import logging
from windlass import JobContext, Windlass

app = Windlass()
EVIL = {EVIL!r}


@app.job
def fail() -> None:
    logging.getLogger("shop").warning(EVIL)
    JobContext.current().log.warning(EVIL)
    raise ValueError(EVIL)


@app.job
async def afail() -> None:
    raise ValueError("just so")
"""


def acting(text: str) -> set[str]:
    """Characters of a text that would act on a terminal, but for newlines and tabs."""
    return set(re.findall(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]", text))


def worked_off(commands: Commands, *jobs: str) -> tuple[str, dict[str, str]]:
    """What a worker printed that ran these jobs, and their ids."""
    (commands.folder / "evil.py").write_text(EVIL_APP)
    enqueue = "import evil, sys; [print(name, getattr(evil, name).enqueue().id) for name in sys.argv[1:]]"
    ids = dict(line.split() for line in commands.python(enqueue, *jobs).splitlines())
    worker = commands.start("worker", "evil:app")
    for job_id in ids.values():
        worker.says(rf"job {job_id} \(evil:\w+\) attempt 1 failed for good: ")
    worker.terminate()
    assert worker.exit_code() == 0
    return worker.printed, ids


def test_no_message_acts_on_the_terminal_or_forges_a_line_of_the_log(sqlite_commands: Commands):
    """J10.6: escapes, C1 and bidirectional characters, and newlines in errors and log lines."""
    printed, _ = worked_off(sqlite_commands, "fail")
    assert acting(printed) == set()
    assert FORGED in printed
    assert [line for line in printed.splitlines() if line.startswith(FORGED)] == []


def test_a_failure_is_logged_with_the_traceback_of_the_body_and_its_id_once(sqlite_commands: Commands):
    """J10.6, J2.5: the user's traceback once per failure, from the user's first frame on; the job's id once."""
    printed, ids = worked_off(sqlite_commands, "fail", "afail")
    for name, job_id in ids.items():
        (line,) = [line for line in printed.splitlines() if f"job {job_id} (" in line]
        assert line.count(job_id) == 1
        assert printed.count(f", in {name}\n") == 1
    assert printed.count("Traceback (most recent call last)") == 2
    assert "/windlass/" not in printed
    first = printed.index("Traceback (most recent call last)")
    assert re.match(r'Traceback \(most recent call last\):\n +File ".*evil\.py", line \d+, in ', printed[first:])


def test_stored_texts_are_shown_without_control_characters(sqlite_commands: Commands):
    """J10.6: `job show`, `dlq show` and `--json` alike; programs still get the error as it was stored."""
    _, ids = worked_off(sqlite_commands, "fail")
    for arguments in (("job", "show"), ("dlq", "show")):
        for form in ((), ("--json",)):
            code, printed = sqlite_commands.run(*arguments, "-a", "evil:app", *form, ids["fail"])
            assert (code, acting(printed)) == (0, set())
            assert [line for line in printed.splitlines() if line.startswith(FORGED)] == []
    code, printed = sqlite_commands.run("job", "show", "-a", "evil:app", "--json", ids["fail"])
    assert json.loads(printed)["error"] == f"ValueError: {EVIL}"


def test_stored_tracebacks_begin_with_the_frame_of_the_body(desk: Desk):
    """J2.5: on threads, coroutines and in processes of jobs."""
    desk.work_off(handle := desk.stumble.enqueue(7))
    (*_, last) = desk.app.history(handle.id)
    assert last.traceback is not None
    lines = last.traceback.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1].endswith(", in stumble")


def test_a_line_inside_a_job_names_it_once():
    formatter = PlainFormatter()
    record = logging.makeLogRecord({"msg": "job %s began", "args": ("0198",), "job_id": "0198", "attempt": 2})
    assert formatter.format(record).count("0198") == 1
    record = logging.makeLogRecord({"msg": "charging", "job_id": "0198", "attempt": 2})
    assert formatter.format(record).endswith("charging  [job 0198, attempt 2]")
