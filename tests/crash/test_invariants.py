"""The invariants of crash tests are no decoration: each way in which gates and groups can miscount is found."""

from collections.abc import Callable

from tests.crash.programs import bodies
from tests.support.facts import one, rows
from tests.support.flow_invariants import check_settled_flows
from tests.support.invariants import check_gates, check_invariants
from tests.support.programs import Programs
from tests.support.waiting import until
from windlass import Windlass, group

SPOILED = {
    "a place that nobody holds": (
        "UPDATE windlass_gate SET in_use = in_use + 1 WHERE name = 'resource:stripe'",
        "UPDATE windlass_gate SET in_use = in_use - 1 WHERE name = 'resource:stripe'",
    ),
    "a place given back twice": (
        "INSERT INTO windlass_freed (gate, places) VALUES ('queue:mail', 1)",
        "DELETE FROM windlass_freed",
    ),
    "a place that its holder forgot": (
        "UPDATE windlass_hot SET holds = '[\"queue:mail\"]'",
        'UPDATE windlass_hot SET holds = \'["queue:mail","resource:stripe"]\'',
    ),
    "a gate that is not there": (
        "UPDATE windlass_gate SET name = 'resource:gone' WHERE name = 'resource:stripe'",
        "UPDATE windlass_gate SET name = 'resource:stripe' WHERE name = 'resource:gone'",
    ),
    "a holder that does not run": (
        "UPDATE windlass_hot SET status = 'PAUSED'",
        "UPDATE windlass_hot SET status = 'RUNNING'",
    ),
}
"""What spoils a store in which one job holds two places, and what mends it."""


def is_found(url: str, check: Callable[[str], None] = check_gates) -> bool:
    try:
        check(url)
    except AssertionError:
        return True
    return False


def test_gates_with_a_wrong_count_of_permits_are_found(app: Windlass, store_url: str, programs: Programs):
    """J6.2: too many, too few, released twice, held by no job; and a correct store passes before and after."""
    app.configure_resource("stripe", 2)
    app.limit_queue("mail", concurrency=2, create=True)
    with app.worker():
        handle = app.bind(bodies.hold, 1).using(queue="mail", resource="stripe").enqueue()
        until(lambda: programs.ran("began") == ["1"], "the job to hold its places")
        assert one(store_url, "SELECT holds FROM windlass_hot") == '["queue:mail","resource:stripe"]'
        check_invariants(store_url)
        for how, (spoil, repair) in SPOILED.items():
            rows(store_url, spoil)
            assert is_found(store_url), how
            rows(store_url, repair)
            check_gates(store_url)
        programs.open_gate()
        assert handle.result(90) == 1
    check_invariants(store_url)


SPOILED_FLOWS = {
    "a member that is counted twice": (
        "UPDATE windlass_group SET failed = failed + 1",
        "UPDATE windlass_group SET failed = failed - 1",
    ),
    "a member that is noted twice": (
        "INSERT INTO windlass_group_delta (group_id, succeeded, failed) SELECT id, 1, 0 FROM windlass_group",
        "DELETE FROM windlass_group_delta",
    ),
    "a note that is left": (
        "INSERT INTO windlass_group_delta (group_id, succeeded, failed) SELECT id, 0, 0 FROM windlass_group",
        "DELETE FROM windlass_group_delta",
    ),
    "a member too many": (
        "UPDATE windlass_group SET total = total + 1",
        "UPDATE windlass_group SET total = total - 1",
    ),
    "a canceled follower that no retry would revive": (
        "UPDATE windlass_done SET canceled_by = NULL",
        "UPDATE windlass_done SET canceled_by = (SELECT id FROM windlass_group) WHERE status = 'CANCELED'",
    ),
    "a follower that ran and was canceled": (
        "UPDATE windlass_done SET canceled_by = (SELECT id FROM windlass_group)",
        "UPDATE windlass_done SET canceled_by = NULL WHERE status <> 'CANCELED'",
    ),
    "a follower that was released early": (
        "UPDATE windlass_done SET status = 'FAILED' WHERE queue = 'chain'",
        "UPDATE windlass_done SET status = 'SUCCEEDED' WHERE queue = 'chain'",
    ),
    "a follower that waits for what has ended": (
        "UPDATE windlass_hot SET due = NULL",
        "UPDATE windlass_hot SET due = 9000000000000000",
    ),
    "an operation that is left": (
        "INSERT INTO windlass_operation (id, kind, detail, touched_at) SELECT id, 'x', '[]', 0 FROM windlass_group",
        "DELETE FROM windlass_operation",
    ),
}
"""What spoils a store with a group of which a member failed and a chain whose second job waits, and what mends it."""


def test_flows_that_count_or_release_wrongly_are_found(app: Windlass, store_url: str, programs: Programs):
    """J8.1, J8.3: counted twice or never, released early or never; a sound store passes before and after."""
    join = app.bind(bodies.note, 3)
    last = group(app.bind(bodies.note, 1), app.bind(bodies.wordless, 2)).then_on_failure(app.bind(bodies.note, 4))
    first = app.bind(bodies.note, 5).using(queue="chain")
    with app.worker():
        last.then(join).enqueue()
        first.then(app.bind(bodies.note, 6).using(delay=3600)).enqueue()
        until(lambda: sorted(programs.ran()) == ["1", "2", "4", "5"], "all but the join to run")
        until(lambda: one(store_url, "SELECT count(*) FROM windlass_done") == 5, "all but the last to end")
    check_invariants(store_url)
    check_settled_flows(store_url)
    for how, (spoil, repair) in SPOILED_FLOWS.items():
        rows(store_url, spoil)
        assert is_found(store_url, check_settled_flows), how
        rows(store_url, repair)
        check_settled_flows(store_url)
