"""SIGKILL of a node in the middle of a duty: the next one takes it over when the lease is over, and all is even."""

from collections import Counter
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from tests.crash.programs import billing, bodies
from tests.support.crashing import KILLED, Stage
from tests.support.facts import one, rows, statuses
from tests.support.invariants import check_gates
from tests.support.programs import SHORT_LEASES
from tests.support.waiting import until
from windlass import JobHandle, JobStatus

UNUSED_QUEUE = "nobody"
"""A queue without jobs: a node that serves only it has duties, and runs nothing."""
SHORTER_LEASES = {**SHORT_LEASES, "WINDLASS_NODE__HEARTBEAT_INTERVAL": "0.25"}
ARCHIVES = {**SHORTER_LEASES, "WINDLASS_JOBS__RETENTION": "0", "WINDLASS_JOBS__ARCHIVE_INTERVAL": "0.05"}
PURGES = {**SHORTER_LEASES, "WINDLASS_DEAD_LETTERS__RETENTION": "0.001"}
SWEEPS = {
    **SHORTER_LEASES,
    "WINDLASS_NODE__SWEEP_INTERVAL": "0.05",
    "WINDLASS_NODE__UNKNOWN_TARGET_AFTER": "0",
    "WINDLASS_NODE__RECOVERY_INTERVAL": "0.5",
}
KINDS = ("job", "hot", "done", "attempt", "archive", "dead_letter")


def ended(stage: Stage, count: int, failed: int) -> list[JobHandle[Any]]:
    """Jobs that have succeeded, and others that failed for good, with keys and tags."""
    notes = [stage.app.bind(bodies.note, n).using(idempotency_key=f"note-{n}", tags=["old"]) for n in range(count)]
    wordless = [stage.app.bind(bodies.wordless, n).using(tags=["old"]) for n in range(failed)]
    handles: list[JobHandle[Any]] = stage.app.enqueue_many([*notes, *wordless])
    with stage.app.worker():
        stage.settled()
    return handles


def counts(stage: Stage) -> dict[str, int]:
    """Rows of the tables in which a job can be."""
    return {kind: int(one(stage.url, f"SELECT count(*) FROM windlass_{kind}")) for kind in KINDS}


def seen(stage: Stage, handles: Sequence[JobHandle[Any]]) -> list[object]:
    """All that a user can read of these jobs, each found exactly once."""
    found = Counter(job.id for job in stage.app.find(tag="old", limit=1_000))
    assert found == Counter(handle.id for handle in handles)
    return [(stage.app.get(handle.id), stage.app.history(handle.id)) for handle in handles]


def dies(stage: Stage, failpoints: str, environ: dict[str, str]) -> None:
    worker = stage.start(failpoints, [UNUSED_QUEUE], environ)
    assert worker.exit_code() == KILLED, f"it did not die at {failpoints}:\n{worker.printed}"


def test_an_archive_move_that_is_killed_in_the_middle_is_taken_over_and_moves_each_job_once(stage: Stage):
    """P9.C10, J7.5, J7.7: dead with a batch half moved, and with one just committed; the third does the rest."""
    handles = ended(stage, 38, 2)
    before = seen(stage, handles)
    dies(stage, "archive.copied=kill@2", ARCHIVES)
    assert counts(stage) == {"job": 30, "hot": 0, "done": 30, "attempt": 30, "archive": 10, "dead_letter": 2}
    stage.in_order()
    dies(stage, "archive.after_commit=kill", ARCHIVES)
    assert counts(stage) == {"job": 20, "hot": 0, "done": 20, "attempt": 20, "archive": 20, "dead_letter": 2}
    assert seen(stage, handles) == before
    third = stage.programs.worker(stage.url, environ=ARCHIVES)
    until(lambda: counts(stage)["archive"] == len(handles), "the rest to be archived")
    third.kill()
    assert counts(stage) == {"job": 0, "hot": 0, "done": 0, "attempt": 0, "archive": 40, "dead_letter": 2}
    assert seen(stage, handles) == before
    again = stage.app.bind(bodies.note, 7).using(idempotency_key="note-7").enqueue()
    assert (again.id, again.duplicate) == (handles[7].id, True)
    stage.in_order()


LETTERS = "SELECT coalesce(sum(count), 0) FROM windlass_dead_letter_group"
DUE_LONG_AGO = """INSERT INTO windlass_lease (name, holder, fence, until, since)
    VALUES ('purge of dead letters', NULL, 0, 0, 0) ON CONFLICT (name) DO UPDATE SET since = 0"""
"""A night without a node to purge: the first node that starts makes up for it."""
PASSED = "SELECT passed_at FROM windlass_lease WHERE name = 'purge of dead letters'"


def test_a_purge_that_is_killed_deletes_a_dead_letter_with_all_that_is_kept_of_it_or_not_at_all(stage: Stage):
    """P9.C10, J7.5, J5.6: before the commit all of them are there, after it none is; others are never touched."""
    handles = ended(stage, 3, 5)
    before = seen(stage, handles)
    rows(stage.url, DUE_LONG_AGO)
    dies(stage, "purge.before_commit=kill", PURGES)
    assert (seen(stage, handles), int(one(stage.url, LETTERS))) == (before, 5)
    stage.in_order()
    dies(stage, "purge.after_commit=kill", PURGES)
    assert seen(stage, handles[:3]) == before[:3]
    assert counts(stage) == {"job": 3, "hot": 0, "done": 3, "attempt": 3, "archive": 0, "dead_letter": 0}
    assert (int(one(stage.url, LETTERS)), one(stage.url, PASSED)) == (0, None)
    third = stage.programs.worker(stage.url, environ=PURGES)
    until(lambda: one(stage.url, PASSED) is not None, "the purge to be taken over, and to pass")
    third.kill()
    assert seen(stage, handles[:3]) == before[:3]
    stage.in_order(purged=5)


def kept_by_the_dead(stage: Stage) -> None:
    """A permit of a dead node: held by a body that ran on after its job was canceled."""
    stage.app.configure_resource("stripe", 1)
    nobody = UUID(int=0)
    rows(stage.url, "UPDATE windlass_gate SET in_use = 1 WHERE name = 'resource:stripe'")
    rows(
        stage.url,
        f"""INSERT INTO windlass_permit (job_id, fence, node, holds)
            VALUES ('{nobody}', 1, 'gone', '["resource:stripe"]')""",
    )
    check_gates(stage.url)


def test_a_killed_sweep_releases_permits_once_and_fails_jobs_once(stage: Stage):
    """P9.C10, J7.5, J6.2, J6.3: half done, or done and not published; nothing is left out or doubled."""
    kept_by_the_dead(stage)
    unknown = stage.app.bind(stage.app.job(billing.charge), 7)
    handle = unknown.using(business_key="order", on_failure=bodies.mourn).enqueue()
    dies(stage, "permits.deleted=kill", SWEEPS)
    check_gates(stage.url)
    assert [resource.in_use for resource in stage.app.resources()] == [1]
    serves = {**SWEEPS, "TEST_QUEUES": "default"}
    dies(stage, "sweep.given_up=kill", serves)
    assert statuses(stage.url) == {"PENDING": 1}
    check_gates(stage.url)
    assert [resource.in_use for resource in stage.app.resources()] == [0]
    dies(stage, "sweep.after_commit=kill", SWEEPS)
    assert (handle.status(), statuses(stage.url)) == (JobStatus.FAILED, {"FAILED": 1, "PENDING": 1})
    third = stage.programs.worker(stage.url, environ=SWEEPS)
    until(lambda: statuses(stage.url) == {"FAILED": 1, "SUCCEEDED": 1}, "the callback to run")
    third.kill()
    assert stage.programs.ran("mourned") == ["7"]
    assert stage.app.get(handle.id).reason == "target_not_found"
    assert one(stage.url, "SELECT count(*) FROM windlass_dead_letter") == 1
    assert one(stage.url, "SELECT count(*) FROM windlass_live_key") == 0
    check_gates(stage.url)


def test_a_sweep_killed_after_it_canceled_expired_jobs_has_canceled_each_once(stage: Stage):
    """P9.C10, J1.9: nothing was published, yet waiting handles find it, and the key is free."""
    handle = stage.app.bind(bodies.note, 7).using(business_key="order", expires=0.001).enqueue()
    dies(stage, "expiry.after_commit=kill", SWEEPS)
    assert (handle.join(timeout=90), stage.app.get(handle.id).reason) == (JobStatus.CANCELED, "expired")
    assert stage.app.history(handle.id) == []
    assert one(stage.url, "SELECT count(*) FROM windlass_live_key") == 0
    stage.programs.worker(stage.url, environ=SWEEPS).kill()
    assert statuses(stage.url) == {"CANCELED": 1}
