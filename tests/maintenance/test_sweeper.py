"""What the sweeper looks at again."""

from tests.engine import jobs
from tests.maintenance.moving import Moving
from tests.support.facts import one, rows
from tests.support.waiting import until
from windlass import JobStatus, NodeLost

LONG = 90


def test_leases_of_dead_nodes_are_released(moving: Moving):
    """J7.5: no node has to wait for them, and a listing is not misleading."""
    app = moving.app()
    app.job(jobs.note)
    rows(
        moving.url,
        "INSERT INTO windlass_lease (name, holder, fence, until, since) "
        f"VALUES ('some duty', 'gone', 7, {10**17}, 0), ('archive', 'gone', 7, {10**17}, 0)",
    )
    with app.worker():
        until(lambda: one(moving.url, "SELECT holder FROM windlass_lease WHERE name = 'some duty'") is None, "it", LONG)
        until(
            lambda: one(moving.url, "SELECT passed_at FROM windlass_lease WHERE name = 'archive'"),
            "the archive to pass, although its lease has ages to run",
            LONG,
        )


def test_jobs_that_run_on_an_unknown_node_are_requeued(moving: Moving):
    """J7.2, J7.5: RUNNING on an unknown node; published once."""
    app = moving.app()
    events: list[NodeLost] = []
    app.on(NodeLost)(events.append)
    handle = app.job(jobs.note).enqueue("x")
    rows(moving.url, "UPDATE windlass_hot SET status = 'RUNNING', node = 'gone', fence = 1, picked_at = 1")
    with app.worker():
        assert handle.join(LONG) is JobStatus.SUCCEEDED
        assert app.get(handle.id).crash_count == 1
    assert [(event.node, event.recovered) for event in events] == [("gone", 1)]
