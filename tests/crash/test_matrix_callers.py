"""Crash matrix: a process that enqueues or cancels dies before or after the commit."""

from tests.crash.programs import bodies
from tests.crash.programs.submitter import MANY
from tests.support.crashing import KILLED, Stage
from tests.support.facts import one, statuses
from tests.support.programs import SHORT_LEASES, Program, Programs
from tests.support.waiting import until
from windlass import JobStatus

KINDS = {"one": 1, "keyed": 2, "async": 3, "many": 100}
NUMBERS = sorted([1, 2, 3, *range(100, 100 + MANY)])
STORED = ("windlass_job", "windlass_hot", "windlass_key", "windlass_live_key", "windlass_job_tag", "windlass_queue")


def callers_killed_at(stage: Stage, point: str, kinds: dict[str, int]) -> list[Program]:
    environ = {**SHORT_LEASES, "WINDLASS_FAILPOINTS": f"{point}=kill"}
    callers = [
        stage.programs.start("submitter", stage.url, kind, number, environ=environ) for kind, number in kinds.items()
    ]
    assert [caller.exit_code() for caller in callers] == [KILLED] * len(callers)
    assert [caller for caller in callers if "stored" in caller.printed] == []
    return callers


def test_a_caller_killed_before_its_commit_has_stored_nothing(stage: Stage):
    """P9.C0, J4.3: not a row of the job, its keys, its tags, or its queue."""
    callers_killed_at(stage, "submit.before_commit", {**KINDS, "own": 4})
    assert {table: one(stage.url, f"SELECT count(*) FROM {table}") for table in STORED} == dict.fromkeys(STORED, 0)
    stage.in_order()


def test_committed_jobs_of_a_killed_caller_run(stage: Stage):
    """P9.C0, J1.4: stored is stored; a caller that comes back with its key is given the job it had stored."""
    callers_killed_at(stage, "submit.after_commit", KINDS)
    assert statuses(stage.url) == {"PENDING": len(NUMBERS)}
    stage.finished()
    assert sorted(int(n) for n in stage.programs.ran()) == NUMBERS
    assert statuses(stage.url) == {"SUCCEEDED": len(NUMBERS)}
    again = stage.programs.start("submitter", stage.url, "keyed", KINDS["keyed"])
    assert again.says(r"^stored \S+ (\w+)$")[1] == "True"
    assert again.exit_code() == 0
    assert statuses(stage.url) == {"SUCCEEDED": len(NUMBERS)}


def test_callers_killed_while_they_make_the_tables_leave_a_file_that_others_can_use(
    sqlite_url: str, programs: Programs
):
    """P9.C0: SQLite's schema is made at first use; a process that dies then leaves all of a migration, or nothing."""
    for nth in (1, 2, 1):  # at the first migration, at the second, and at that one again
        environ = {**SHORT_LEASES, "WINDLASS_FAILPOINTS": f"store.before_commit=kill@{nth}"}
        assert programs.start("submitter", sqlite_url, "one", nth, environ=environ).exit_code() == KILLED
    sound = programs.start("submitter", sqlite_url, "one", 9)
    assert sound.exit_code() == 0, sound.printed
    assert statuses(sqlite_url) == {"PENDING": 1}
    assert one(sqlite_url, "PRAGMA integrity_check") == "ok"


def canceled_and_killed_at(stage: Stage, point: str) -> tuple[Program, list]:
    """A program cancels a running job and a waiting one; it dies after the first. The first is given first."""
    worker = stage.programs.worker(stage.url)
    assert worker.node
    waits = stage.app.bind(bodies.note, 2).using(delay=3_600).enqueue()
    runs = stage.app.bind(bodies.hold, 1).using(business_key="held").enqueue()
    until(lambda: stage.programs.ran("began"), "the body to begin")
    environ = {**SHORT_LEASES, "WINDLASS_FAILPOINTS": f"{point}=kill"}
    steerers = [stage.programs.start("steerer", stage.url, job.id, environ=environ) for job in (runs, waits)]
    assert [steerer.exit_code() for steerer in steerers] == [KILLED] * 2
    return worker, [runs, waits]


def test_a_cancel_that_was_not_committed_has_changed_nothing(stage: Stage):
    """J2.2, J2.1: the jobs are as they were, the one that runs ends by itself."""
    worker, (runs, waits) = canceled_and_killed_at(stage, "cancel.before_commit")
    assert (runs.status(), waits.status()) == (JobStatus.RUNNING, JobStatus.PENDING)
    stage.in_order()
    stage.programs.open_gate()
    assert runs.result(90) == 1
    assert stage.history(runs) == ["succeeded"]
    assert "was canceled" not in worker.printed


def test_a_cancel_that_was_committed_reaches_the_body_although_its_caller_died(stage: Stage):
    """J2.2: the node learns of it from the store only; the body is stopped, and its result is ignored."""
    worker, (runs, waits) = canceled_and_killed_at(stage, "cancel.after_commit")
    assert (runs.status(), waits.status()) == (JobStatus.CANCELED, JobStatus.CANCELED)
    worker.says(rf"job {runs.id} \S+ was canceled")
    worker.terminate()
    assert worker.exit_code() == 0, "a body that was stopped holds up no drain"
    assert (stage.history(runs), stage.history(waits)) == (["canceled"], [])
    assert stage.programs.ran() == []
    stage.in_order()
