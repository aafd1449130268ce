"""The loss of a node is published once, in the process that recovered it."""

from tests.engine import jobs
from tests.maintenance.moving import Moving
from tests.support.facts import one, rows
from tests.support.waiting import until
from windlass import NodeLost, NodeSettings, Settings, Windlass

QUICK = Settings(node=NodeSettings(heartbeat_interval=0.1, missed_heartbeats=5, recovery_interval=0.02))
"""A node gives others up after half a second."""
MORE_THAN_A_BATCH = 201


def silent(url: str, node: str) -> None:
    """Enter a node whose lease has run out."""
    rows(
        url,
        "INSERT INTO windlass_node (id, host, pid, version, started_at, heartbeat_at, lease_until, running, state) "
        f"VALUES ('{node}', 'host', 1, '0', 1, 1, 2, 0, 'alive')",
    )


def listening(moving: Moving, events: list[NodeLost]) -> Windlass:
    app = moving(settings=QUICK)
    app.on(NodeLost)(events.append)
    app.job(jobs.note)
    return app


def losses(events: list[NodeLost], *nodes: str) -> list[tuple[str, int]]:
    """Of these nodes: the workers of the test may themselves be late on a busy machine, and be published as lost."""
    return sorted((event.node, event.recovered) for event in events if event.node in nodes)


def test_a_lost_node_that_ran_nothing_is_published_once_in_the_cluster(moving: Moving):
    """J7.2, J5.8: `recovered` is 0, and one of two nodes that check for it publishes it."""
    events: list[NodeLost] = []
    first, second = listening(moving, events), listening(moving, events)
    with first.worker(), second.worker():
        silent(moving.url, "silent")
        until(lambda: losses(events, "silent"), "the loss to be told of")
        silent(moving.url, "silent too")
        until(lambda: losses(events, "silent too"), "the next one to be told of, after more looks at the first")
    assert losses(events, "silent", "silent too") == [("silent", 0), ("silent too", 0)]
    assert one(moving.url, "SELECT count(*) FROM windlass_node WHERE id LIKE 'silent%'") == 0


def test_a_lost_node_that_ran_more_than_a_batch_is_published_once_with_all_its_jobs(moving: Moving):
    """J7.2: however many transactions it takes to bring its jobs back."""
    events: list[NodeLost] = []
    app = listening(moving, events)
    late = app.job(jobs.note).using(delay=600)
    app.enqueue_many([late.bind(str(n)) for n in range(MORE_THAN_A_BATCH)])
    silent(moving.url, "busy")
    rows(moving.url, "UPDATE windlass_hot SET status = 'RUNNING', node = 'busy', fence = 1, picked_at = 1")
    with app.worker():
        until(lambda: losses(events, "busy"), "the loss to be told of")
        silent(moving.url, "silent")
        until(lambda: losses(events, "silent"), "more looks")
    assert losses(events, "busy") == [("busy", MORE_THAN_A_BATCH)]
