"""The invariants of crash tests are no decoration: each way in which gates can miscount is found."""

from tests.crash.programs import bodies
from tests.support.facts import one, rows
from tests.support.invariants import check_gates, check_invariants
from tests.support.programs import Programs
from tests.support.waiting import until
from windlass import Windlass

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


def is_found(url: str) -> bool:
    try:
        check_gates(url)
    except AssertionError:
        return True
    return False


def test_gates_that_count_other_places_than_are_held_are_found(app: Windlass, store_url: str, programs: Programs):
    """J6.2: too many, too few, given back twice, held by nobody; and a sound store passes before and after."""
    app.configure_resource("stripe", 2)
    app.limit_queue("mail", concurrency=2, create=True)
    with app.worker():
        handle = app.bind(bodies.hold, 1).using(queue="mail", resource="stripe").enqueue()
        until(lambda: programs.ran("began") == ["1"], "the job to hold its places")
        assert one(store_url, "SELECT holds FROM windlass_hot") == '["queue:mail","resource:stripe"]'
        check_invariants(store_url)
        for how, (spoil, mend) in SPOILED.items():
            rows(store_url, spoil)
            assert is_found(store_url), how
            rows(store_url, mend)
            check_gates(store_url)
        programs.open_gate()
        assert handle.result(30) == 1
    check_invariants(store_url)
