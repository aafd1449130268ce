"""The checks of flows: what a crash or another version left behind is found and put right."""

import logging

import pytest

from tests.engine.apps import Apps, count, query, until
from tests.flow.flow_bodies import BROKEN, Jobs
from windlass import JobStatus, NodeSettings, Settings, Windlass, group
from windlass.domain.identity import FIRST_ID
from windlass.stores.plan import Step
from windlass.stores.plans import flow_checks
from windlass.testing import drain

QUICK = Settings(node=NodeSettings(sweep_interval=0.05))


def script(dialect, text: str):
    del dialect
    yield Step("script", {"text": text})


def change(app: Windlass, text: str) -> None:
    app.database.run(script, text)


@pytest.fixture
def quick(apps: Apps) -> Windlass:
    return apps(settings=QUICK)


def test_a_follower_of_an_ended_job_is_released(quick: Windlass, apps: Apps, caplog: pytest.LogCaptureFixture):
    """J7.5: what a node of an older version ended without its followers."""
    jobs = Jobs(quick)
    handle = jobs.step.bind("a").then(jobs.step.bind("b")).enqueue()
    change(
        quick,
        f"""INSERT INTO windlass_done (id, queue, target, status, fence, attempts, crash_count, finished_at)
        SELECT id, queue, target, 'SUCCEEDED', 1, 1, 0, 1 FROM windlass_hot WHERE id = '{handle.id}';
        DELETE FROM windlass_hot WHERE id = '{handle.id}';""",
    )
    with caplog.at_level(logging.WARNING), quick.worker():
        until(lambda: count(apps.url, "hot") == 0)
    assert query(apps.url, "SELECT DISTINCT status FROM windlass_done") == [("SUCCEEDED",)]
    assert "were still waiting; they are released or canceled now" in caplog.text


def test_pending_counts_are_added_by_the_checks(quick: Windlass, apps: Apps):
    """J7.5, J8.3: a process died between its commit and the count."""
    jobs = Jobs(quick)
    join = group(jobs.double.bind(1), jobs.double.bind(2)).then(jobs.step.bind("after")).enqueue()
    (group_id,) = query(apps.url, "SELECT id FROM windlass_group")[0]
    change(
        quick,
        f"""INSERT INTO windlass_done (id, queue, target, status, fence, attempts, crash_count, result, finished_at)
        SELECT h.id, h.queue, h.target, 'SUCCEEDED', 1, 1, 0, '2', 1 FROM windlass_hot h WHERE h.due IS NOT NULL;
        DELETE FROM windlass_hot WHERE due IS NOT NULL;
        INSERT INTO windlass_group_delta (group_id, succeeded, failed) VALUES ('{group_id}', 2, 0);""",
    )
    if apps.url.startswith("sqlite"):  # there nothing is ever left: count as PostgreSQL would have
        change(quick, "UPDATE windlass_group SET succeeded = 2;")
        change(quick, "DELETE FROM windlass_group_delta;")
    with quick.worker():
        assert join.join(timeout=90) is JobStatus.SUCCEEDED
    assert count(apps.url, "group_delta") == 0


def test_a_stalled_group_is_counted_again(quick: Windlass, apps: Apps, caplog: pytest.LogCaptureFixture):
    """J7.5: all members have ended, and the group does not know; that is logged as an error."""
    jobs = Jobs(quick)
    join = group(jobs.double.bind(1), jobs.double.bind(2)).then(jobs.step.bind("after")).enqueue()
    change(
        quick,
        """INSERT INTO windlass_done (id, queue, target, status, fence, attempts, crash_count, result, finished_at)
        SELECT h.id, h.queue, h.target, 'SUCCEEDED', 1, 1, 0, '2', 1 FROM windlass_hot h WHERE h.due IS NOT NULL;
        DELETE FROM windlass_hot WHERE due IS NOT NULL;
        UPDATE windlass_group SET touched_at = 0;""",
    )
    with caplog.at_level(logging.ERROR), quick.worker():
        assert join.join(timeout=90) is JobStatus.SUCCEEDED
    assert "counts of 1 groups were wrong" in caplog.text


def test_an_idle_operation_is_carried_on(quick: Windlass, apps: Apps):
    """J8.6: after a crash of the process that began it."""
    jobs = Jobs(quick)
    handle = jobs.step.using(delay=3600).bind("a").then(jobs.step.bind("b")).enqueue()
    follower = query(apps.url, "SELECT id FROM windlass_hot WHERE due IS NULL")[0][0]
    change(
        quick,
        f"""INSERT INTO windlass_operation (id, kind, detail, touched_at)
        VALUES ('{handle.id}', 'release', '[["{handle.id}",1]]', 0);""",
    )
    with quick.worker():
        assert quick.handle(follower).join(timeout=90) is JobStatus.SUCCEEDED
    assert count(apps.url, "operation") == 0


def test_checks_of_sound_flows_change_nothing(app: Windlass, apps: Apps, jobs: Jobs):
    """J7.5: whatever state flows are in."""
    group(jobs.double.bind(1), jobs.double.using(delay=60).bind(2)).then(jobs.join).enqueue()
    jobs.step.bind("a").then(jobs.step.bind("b")).enqueue()
    before = query(apps.url, "SELECT id, due FROM windlass_hot ORDER BY id")
    assert not app.database.run(flow_checks.find_unfinished)
    assert app.database.run(flow_checks.release_missed, FIRST_ID).found == 0
    assert app.database.run(flow_checks.recount, FIRST_ID).found == 0
    assert query(apps.url, "SELECT id, due FROM windlass_hot ORDER BY id") == before


@pytest.mark.parametrize("kind", ["cancel_downstream", "release"])
def test_a_damaged_operation_does_not_block_others(quick: Windlass, apps: Apps, kind: str):
    """J7.9: it is removed, and the checks find what it was about."""
    jobs = Jobs(quick)
    change(
        quick,
        f"""INSERT INTO windlass_operation (id, kind, detail, touched_at)
        VALUES ('01a1ebe2-3843-75df-8552-393e12206818', '{kind}', '{{broken', 0);""",
    )
    BROKEN.add("a")
    handle = jobs.step.bind("a").then(jobs.step.bind("b")).enqueue()
    drain(quick)
    BROKEN.clear()
    assert handle.retry()
    with quick.worker():
        until(lambda: count(apps.url, "operation") == 0)
        until(lambda: count(apps.url, "hot") == 0)
    assert handle.graph().succeeded
