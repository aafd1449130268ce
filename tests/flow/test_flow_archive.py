"""Flows and the archive: archived as a whole, read as before, and restored by a retry."""

import asyncio
from collections.abc import Callable
from uuid import UUID, uuid4

import pytest

from tests.engine.apps import Apps, count, query
from tests.flow.flow_bodies import BROKEN, RAN, Jobs, all_jobs, id_of, states
from windlass import JobStateError, Windlass, group
from windlass.domain.clock import VirtualClock
from windlass.domain.rhythm import Every
from windlass.maintenance.archive_duty import ArchiveDuty
from windlass.purge_duty import PurgeDuty
from windlass.runtime.duty import Duty
from windlass.runtime.error_handling import ErrorHandling
from windlass.stores.lease_holder import LeaseHolder
from windlass.stores.plans import cluster, dead_letters, flow_returns
from windlass.testing import drain

DAY = 86_400
RETENTION = 30 * DAY
TABLES = ("job", "done", "attempt", "flow", "group")


def run_duty(app: Windlass, make: Callable[[LeaseHolder], Duty]) -> None:
    """One pass of a duty, batch after batch."""

    async def batches() -> None:
        lease = LeaseHolder(app.database, f"lease of {name}", lambda: name, 15, Every(1))
        assert await lease.take() == 0
        duty = make(lease)
        duty.begin()
        while await duty.batch():
            pass
        await lease.release(passed=True)
        await app.database.aclose_loop()

    name = f"node-{uuid4()}"
    app.database.run(cluster.register, cluster.NodeRow(name, "host", 1, "0", None), 10**15)
    asyncio.run(batches())


def archive(app: Windlass) -> None:
    """One pass of the archive duty."""
    errors = ErrorHandling()
    run_duty(app, lambda lease: ArchiveDuty(app.database, lease, RETENTION, errors, ids_have_times=False))


def purge(app: Windlass) -> None:
    """One pass of the purge duty."""
    run_duty(app, lambda lease: PurgeDuty(lease, dead_letters.purge, RETENTION, "dead letters", ErrorHandling()))


def left(apps: Apps) -> list[int]:
    return [count(apps.url, table) for table in TABLES]


def test_a_flow_is_archived_as_a_whole(app: Windlass, jobs: Jobs, apps: Apps, clock: VirtualClock):
    """J8.6, J7.7: when its last job ended long ago; its jobs then look as before."""
    slow = jobs.step.using(delay=20 * DAY)
    handle = jobs.step.bind("a").then(slow.bind("b")).then(jobs.step.bind("c")).enqueue()
    drain(app)
    clock.advance(20 * DAY)
    drain(app)
    assert set(states(app).values()) == {"SUCCEEDED"}
    before = all_jobs(app), [app.history(job.id) for job in all_jobs(app)]
    clock.advance(29 * DAY)
    archive(app)
    assert count(apps.url, "archive") == 0, "its first job ended 49 days ago, its last one 29"
    clock.advance(2 * DAY)
    archive(app)
    assert (count(apps.url, "archive"), left(apps)) == (3, [0] * 5)
    assert (all_jobs(app), [app.history(job.id) for job in all_jobs(app)]) == before
    assert [app.get(job.id).parent_id for job in before[0]] == [None, *(job.id for job in before[0][:2])]
    assert handle.result() == "a"
    flows = {str(flow) for (flow,) in query(apps.url, "SELECT flow_id FROM windlass_archive")}
    assert flows == {str(handle.id)}


def test_a_flow_with_a_live_job_is_neither_archived_nor_purged(
    app: Windlass, jobs: Jobs, apps: Apps, clock: VirtualClock
):
    """J8.6, J5.6: other dead letters of that age are purged."""
    BROKEN.add("a")
    group(jobs.step.bind("a"), jobs.step.using(delay=99 * DAY).bind("b")).then_always(jobs.judge).enqueue()
    jobs.step.bind("a").enqueue()
    drain(app)
    clock.advance(40 * DAY)
    purge(app)
    assert (len(app.dead_letters.find().items), count(apps.url, "job")) == (1, 3)
    archive(app)
    assert count(apps.url, "archive") == 0
    assert app.dead_letters.purge(0) == 0
    clock.advance(60 * DAY)
    drain(app)
    purge(app)
    assert (app.dead_letters.find().items, count(apps.url, "job")) == ([], 2)


def test_a_retry_of_an_archived_flow_runs_it_to_its_end(app: Windlass, jobs: Jobs, apps: Apps, clock: VirtualClock):
    """J2.4, J8.3, J8.6: the join gets the results of members that had been archived too."""
    BROKEN.add("b")
    names = (jobs.step.bind(name) for name in "abc")
    handle = group(*names).then(jobs.join).then(jobs.join).enqueue()
    drain(app)
    clock.advance(40 * DAY)
    archive(app)
    assert (count(apps.url, "archive"), left(apps)) == (5, [0] * 5)
    assert states(app) == {"a": "SUCCEEDED", "b": "FAILED", "c": "SUCCEEDED"}
    BROKEN.clear()
    assert app.retry(id_of(app, "b"))
    assert (count(apps.url, "archive"), count(apps.url, "flow")) == (0, 5)
    drain(app)
    assert (handle.result(), RAN.count("a"), RAN.count("b")) == (["a", "b", "c"], 1, 2)
    clock.advance(40 * DAY)
    archive(app)
    assert (count(apps.url, "archive"), left(apps)) == (5, [0] * 5)
    assert handle.result() == ["a", "b", "c"]


def test_a_redrive_restores_archived_flows(app: Windlass, jobs: Jobs, apps: Apps, clock: VirtualClock, monkeypatch):
    """J5.7, J8.6: a flow that is too large is skipped, with the reason, and a retry of it is refused."""
    monkeypatch.setattr(flow_returns, "MOST_ROWS", 3)
    BROKEN.update("ab")
    small = jobs.step.bind("a").then(jobs.step.bind("c")).enqueue()
    large = jobs.step.bind("b").then(jobs.step.bind("d")).then(jobs.step.bind("e")).then(jobs.step.bind("f")).enqueue()
    drain(app)
    clock.advance(40 * DAY)
    archive(app)
    BROKEN.clear()
    with pytest.raises(JobStateError, match="more than 3 jobs that is archived"):
        large.retry()
    assert count(apps.url, "archive") == 6
    done = app.dead_letters.redrive()
    assert (done.ids, list(done.skipped)) == ((small.id,), [UUID(str(large.id))])
    assert "enqueue the missing part of it as a new flow" in done.skipped[large.id]
    drain(app)
    assert {name: state.split()[0] for name, state in states(app).items()} == {
        **dict.fromkeys("ac", "SUCCEEDED"),
        "b": "FAILED",
        **dict.fromkeys("def", "CANCELED"),
    }
