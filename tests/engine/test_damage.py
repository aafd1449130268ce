"""Rows damaged by hand, by another program, by a disk: each fails, or is taken out of the way, alone."""

from collections.abc import Mapping
from contextlib import suppress
from uuid import UUID

import pytest

from tests.engine import jobs
from tests.engine.apps import LONG, Apps, Gate, query, until
from tests.engine.damage import DEEP, EVERYWHERE, HUGE, SQLITE, Damage, execute
from windlass import JobNotFoundError, JobStatus, NodeSettings, Settings, Windlass
from windlass.worker import Worker

GOOD = 30


def differing(app: Windlass, bad: Mapping[UUID, Damage]) -> list[str]:
    """Damaged jobs that have not come to the end they should, as text for people."""
    states = {job_id: app.get(job_id) for job_id in bad}
    return [
        f"{damage.table}.{damage.column}={damage.value!r:.60}: {states[job].status} {states[job].reason}"
        for job, damage in bad.items()
        if (states[job].status.value, states[job].reason) != damage.ends
    ]


def slots_in_use(worker: Worker) -> int:
    assert worker.node is not None
    return worker.node.slots.running


def test_damaged_rows_fail_without_affecting_others(apps: Apps):
    """J7.9, J7.4: in one queue with good jobs, which all succeed; no slot is lost; listings show every job."""
    app = apps()
    damages = (*EVERYWHERE, *(SQLITE if apps.url.startswith("sqlite") else ()))
    add = app.job(jobs.add)
    handles = app.enqueue_many([add.bind(n, 1) for n in range(2 * len(damages))])
    bad = {handle.id: damage for handle, damage in zip(handles[::2], damages, strict=True)}
    for job_id, (table, column, value, _) in bad.items():
        execute(apps.url, f"UPDATE windlass_{table} SET {column} = ? WHERE id = ?", value, str(job_id))
    with app.worker(concurrency=4) as worker:
        assert [handle.result(timeout=LONG) for handle in handles[1::2]] == [n + 1 for n in range(1, len(handles), 2)]
        with suppress(AssertionError):
            until(lambda: not differing(app, bad))
        assert differing(app, bad) == []
        until(lambda: slots_in_use(worker) == 0)
        later = app.enqueue_many([add.bind(n, n) for n in range(GOOD)])
        assert [handle.result(timeout=LONG) for handle in later] == [2 * n for n in range(GOOD)]
    listed = {job.id for job in app.find(limit=1_000)}
    assert listed == {handle.id for handle in (*handles, *later)}


def test_a_live_row_without_its_job_is_removed(apps: Apps, caplog: pytest.LogCaptureFixture):
    """J7.9: it can neither run nor fail; its slot, its keys and its permits are free again, and the log names it."""
    app = apps()
    app.configure_resource("stripe", max_concurrent=1)
    add = app.job(jobs.add).using(resource="stripe")
    orphan, good = add.using(business_key="invoice 7").enqueue(1, 1), add.enqueue(1, 2)
    execute(apps.url, "DELETE FROM windlass_job WHERE id = ?", str(orphan.id))
    with app.worker(concurrency=1):
        assert good.result(timeout=LONG) == 3
        until(lambda: not query(apps.url, "SELECT id FROM windlass_hot"))
        assert add.using(business_key="invoice 7").enqueue(2, 2).result(timeout=LONG) == 4
    assert f"job {orphan.id} had a row in windlass_hot but none in windlass_job" in caplog.text


def test_a_job_without_a_state_is_listed_as_damaged(app: Windlass, apps: Apps):
    """J7.9: a job without a state is shown as damaged; waiting for it raises, waiting for others returns results."""
    add = app.job(jobs.add)
    lost, odd, good = add.enqueue(1, 1), add.enqueue(1, 1), add.enqueue(1, 2)
    execute(apps.url, "DELETE FROM windlass_hot WHERE id = ?", str(lost.id))
    execute(apps.url, "UPDATE windlass_hot SET status = 'BOGUS' WHERE id = ?", str(odd.id))
    for handle in (lost, odd):
        with pytest.raises(JobNotFoundError):
            handle.join(timeout=LONG)
        assert (app.get(handle.id).error or "").startswith("(damaged) status")
    with app.worker():
        assert good.result(timeout=LONG) == 3
    assert {job.id for job in app.find()} == {odd.id, good.id}


def test_a_job_whose_failure_cannot_be_written_is_paused(apps: Apps, caplog: pytest.LogCaptureFixture):
    """J7.9: here because it has ended already; others' outcomes are written, and resume and cancel work on it."""
    app = apps()
    add = app.job(jobs.add)
    twice, good = add.enqueue(1, 1), [add.enqueue(n, 1) for n in range(5)]
    columns = "id, queue, target, status, fence, attempts, crash_count, finished_at"
    ended = f"INSERT INTO windlass_done ({columns}) SELECT id, queue, target, 'SUCCEEDED', 0, 1, 0, 0 FROM windlass_hot"
    execute(apps.url, f"{ended} WHERE id = ?", str(twice.id))
    with app.worker():
        assert [handle.result(timeout=LONG) for handle in good] == [n + 1 for n in range(5)]
        until(lambda: query(apps.url, "SELECT status FROM windlass_hot") == [("PAUSED",)])
    assert f"job {twice.id} is damaged and cannot be failed" in caplog.text


def test_damaged_rows_of_a_lost_node_do_not_hold_up_its_recovery(apps: Apps):
    """J7.9, J7.2: counters at their ends, permits that cannot be read; the good jobs beside them run again."""
    app = apps(settings=Settings(node=NodeSettings(recovery_interval=0.1)))
    add = app.job(jobs.add)
    damages = [d for d in (*EVERYWHERE, *SQLITE) if d.column in ("attempts", "crash_count", "fence", "holds")]
    fitting = [d for d in damages if apps.url.startswith("sqlite") or not isinstance(d.value, str | bytes)]
    handles = [add.enqueue(n, 1) for n in range(2 * len(fitting))]
    execute(apps.url, "UPDATE windlass_hot SET status = 'RUNNING', node = 'gone-1-x', picked_at = 0, fence = 1")
    for handle, damage in zip(handles[::2], fitting, strict=True):
        sql = f"UPDATE windlass_hot SET {damage.column} = ? WHERE id = ?"
        execute(apps.url, sql, damage.value, str(handle.id))
    with app.worker():
        good = [handle.result(timeout=LONG) for handle in handles[1::2]]
        ended = [handle.join(timeout=LONG) for handle in handles[::2]]
    assert good == list(range(2, len(handles) + 1, 2))
    assert set(ended) <= {JobStatus.FAILED, JobStatus.SUCCEEDED}


def test_permits_that_cannot_be_read_do_not_hold_up_the_outcomes_of_others(apps: Apps, gate: Gate):
    """J7.9: damaged while the job runs; its outcome is written with the others, and what can be read is given back."""
    app = apps()
    app.limit_queue("default", concurrency=50)
    hold, add = app.job(jobs.hold), app.job(jobs.add)
    with app.worker():
        held = hold.enqueue(gate.name)
        gate.wait_entered()
        execute(apps.url, "UPDATE windlass_hot SET holds = ? WHERE id = ?", "[nonsense", str(held.id))
        gate.open()
        assert held.result(timeout=LONG) == "let go"
        assert [add.enqueue(n, 1).result(timeout=LONG) for n in range(3)] == [1, 2, 3]


def test_a_row_whose_id_is_none_is_paused(sqlite_url: str, caplog: pytest.LogCaptureFixture):
    """J7.9: SQLite keeps any text as an id; nothing can be written about such a job."""
    apps = Apps(sqlite_url)
    app = apps()
    add = app.job(jobs.add)
    strange, good = add.enqueue(1, 1), add.enqueue(1, 2)
    for table in ("job", "hot"):
        execute(apps.url, f"UPDATE windlass_{table} SET id = 'bad' WHERE id = ?", str(strange.id))
    with app.worker(concurrency=1):
        assert good.result(timeout=LONG) == 3
        until(lambda: query(apps.url, "SELECT status FROM windlass_hot") == [("PAUSED",)])
    assert "job bad is damaged" in caplog.text
    assert {job.error for job in app.find()} == {"(damaged) id", None}
    apps.close()


@pytest.mark.parametrize("column", ["args", "options", "params"])
def test_a_text_that_is_not_utf_8_fails_its_job_alone(sqlite_url: str, column: str):
    """J7.9: SQLite's driver cannot read such a row at all; others of its claim run, and listings show it."""
    apps = Apps(sqlite_url)
    app = apps()
    add = app.job(jobs.add)
    bad, good = add.enqueue(1, 1), [add.enqueue(n, 1) for n in range(3)]
    execute(apps.url, f"UPDATE windlass_job SET {column} = CAST(x'ff41' AS TEXT) WHERE id = ?", str(bad.id))
    with app.worker(concurrency=2):
        assert [handle.result(timeout=LONG) for handle in good] == [1, 2, 3]
        assert bad.join(timeout=LONG) is JobStatus.FAILED
    assert app.get(bad.id).reason == "poison_payload"
    assert {job.id for job in app.find()} == {bad.id, *(handle.id for handle in good)}
    apps.close()


def test_rows_whose_ids_are_no_texts_are_paused_by_the_claim_that_meets_them(
    sqlite_url: str, caplog: pytest.LogCaptureFixture
):
    """J7.9: however many stand in front of good jobs; each is named in the log."""
    apps = Apps(sqlite_url)
    app = apps()
    add = app.job(jobs.add)
    strange, good = [add.enqueue(n, 1) for n in range(GOOD)], [add.enqueue(n, 2) for n in range(3)]
    for nth, handle in enumerate(strange):  # bytes, and texts that are not UTF-8
        value = "?" if nth % 2 else "CAST(? AS TEXT)"
        execute(apps.url, f"UPDATE windlass_hot SET id = {value} WHERE id = ?", b"\xfe%d" % nth, str(handle.id))
    with app.worker(concurrency=2):
        assert [handle.result(timeout=LONG) for handle in good] == [2, 3, 4]
    assert query(apps.url, "SELECT DISTINCT status FROM windlass_hot") == [("PAUSED",)]
    assert sum("with the id b'" in record.getMessage() for record in caplog.records) == GOOD
    apps.close()


ENDED = (
    *(Damage("done", "result", text) for text in ("no JSON", DEEP, '{"$windlass":"unheard of"}')),
    *(Damage("done", "finished_at", number) for number in (HUGE, -HUGE)),
    *(Damage("attempt", "ended_at", number) for number in (HUGE, -HUGE)),
    *(Damage("attempt", "started_at", number) for number in (HUGE, -HUGE)),
    *(Damage("dead_letter", "envelope", text) for text in ("no JSON", "7", DEEP)),
    *(Damage("job", "options", text) for text in ('{"timeout":"x"}', DEEP)),
    *(Damage("job", "args", text) for text in ("no JSON", "7", "[[],5]", DEEP)),
    *(Damage("job", "params", text) for text in ("no JSON", "7", DEEP)),
    *(Damage("job", "created_at", number) for number in (HUGE, -HUGE)),
)


def test_ended_jobs_that_are_damaged_hide_nothing(app: Windlass, apps: Apps):
    """J7.9: `find`, `get`, `history`, `explain` and dead letters show what can be read, and say what cannot."""
    fail = app.job(jobs.fail)
    handles = app.enqueue_many([fail.bind("x") for _ in ENDED])
    with app.worker():
        for handle in handles:
            handle.join(timeout=LONG)
    for handle, (table, column, value, _) in zip(handles, ENDED, strict=True):
        key = "job_id" if table in ("attempt", "dead_letter") else "id"
        execute(apps.url, f"UPDATE windlass_{table} SET {column} = ? WHERE {key} = ?", value, str(handle.id))
    expected = {handle.id for handle in handles}
    assert {job.id for job in app.find()} == expected
    assert {letter.job_id for letter in app.dead_letters.find()} == expected
    assert sum(group.count for group in app.dead_letters.groups()) == len(handles)
    shown = [app.get(handle.id) for handle in handles]
    assert [job.result for job in shown].count("(damaged)") == 3
    assert ["(damaged)" in job.params for job in shown].count(True) == 3
    assert [job.args for job in shown].count(("x",)) == len(ENDED) - 4
    for handle in handles:
        assert len(app.history(handle.id)) == 1
        assert app.explain(handle.id).code
        assert app.dead_letters.get(handle.id).job_id == handle.id
