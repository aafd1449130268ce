"""Every order of events, up to a depth: the product's plans survive all of them, builds broken on purpose do not.

The stories are asserted word by word: they are the shortest ways to go wrong, and the docs print them.
"""

import pytest

from tests.chaos.model.cluster_world import Budget, ClusterWorld
from tests.chaos.model.explorer import Story, explore
from tests.chaos.model.permit_world import PermitWorld

pytestmark = pytest.mark.timeout(900)  # much to do, and others may have the machine


def lines_of(story: Story | None) -> list[str]:
    assert story is not None, "nothing was found wrong"
    return [*story.lines, *(f"=> {problem}" for problem in story.problems)]


def test_no_order_of_claims_stalls_kills_and_recoveries_breaks_an_invariant():
    """J7.2, J7.3, J2.1: two nodes, one job, one each of stall, kill, failure, cancel: all orders of nine moves."""
    explored = explore(ClusterWorld(), 9)
    assert explored.story is None, str(explored.story)
    assert explored.states > 2_000


def test_from_every_state_the_job_comes_to_rest_in_exactly_one_way():
    """J7.2, J7.4: whatever happened in six moves, once the faults are over the job ends, once."""
    explored = explore(ClusterWorld(to_the_end=True), 6)
    assert explored.story is None, str(explored.story)
    assert explored.states > 600


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_no_order_of_many_moves_breaks_an_invariant():
    """J7.2, J7.3: the same, deeper, with two stalls."""
    explored = explore(ClusterWorld(budget=Budget(stalls=2), to_the_end=True), 13)
    assert explored.story is None, str(explored.story)


def test_a_completion_without_the_fence_is_found_by_its_shortest_story():
    """J2.1: the fence is what refuses a late commit (P9.C5b)."""
    assert lines_of(explore(ClusterWorld("no fence"), 10).story) == [
        "a claims the job as claim 1",
        "a enters the body of claim 1",
        "the body of claim 1 returns on a",
        "a stands still",
        "the lease of a runs out",
        "a wakes up",
        "b looks for lost nodes: 1 given up, 1 jobs back",
        "a writes of claim 1 that it ended: done",
        "=> an_outcome_is_written_once_by_its_holder: ended with claim 2, but its result was brought by claim [1]",
        "=> every_claim_leaves_one_row_of_history: has gaps in its history: claims [1, 2]",
    ]


def test_a_recovery_that_ignores_heartbeats_is_found_by_its_shortest_story():
    """J7.2: a job on a live node is never touched."""
    lines = lines_of(explore(ClusterWorld("ignored heartbeats"), 10).story)
    assert lines[:2] == ["a claims the job as claim 1", "b looks for lost nodes: 1 given up, 1 jobs back"]
    assert lines[2].startswith("=> no_node_is_given_up_while_it_holds_its_lease: node a-97-1 was given up")
    assert len(lines) == 3


def test_a_completion_in_two_transactions_is_found_by_its_shortest_story():
    """J4.3: success is one transaction (P9.C2)."""
    assert lines_of(explore(ClusterWorld("split commit"), 10).story) == [
        "a claims the job as claim 1",
        "a enters the body of claim 1",
        "the body of claim 1 returns on a",
        "a writes of claim 1 that it ended: done",
        "=> no_job_is_two_things_at_once: is SUCCEEDED and RUNNING at once",
    ]


def test_a_limit_read_from_the_locked_row_holds_in_every_order():
    """J6.2: never exceeded, and back to zero, with two and with three nodes before the gate, one of which may stall."""
    for letters, depth in (("ab", 24), ("abc", 14)):
        explored = explore(PermitWorld(letters=letters), depth)
        assert explored.story is None, str(explored.story)
        assert explored.states > 100


def test_permits_that_are_counted_are_found_by_their_shortest_story():
    """J6.2: a count under READ COMMITTED caps nothing."""
    assert lines_of(explore(PermitWorld("counted permits"), 12).story) == [
        "a begins to claim; 0 permits are in its picture",
        "a gets the lock on the gate's row, which says 0 in use",
        "b begins to claim; 0 permits are in its picture",
        "a finds 0 of 1 places taken, takes one, commits, and enters the body",
        "b gets the lock on the gate's row, which says 1 in use",
        "b finds 0 of 1 places taken, takes one, commits, and enters the body",
        "=> the gate admits 1, and a and b are inside",
    ]


def test_a_permit_released_after_it_was_lost_is_found_with_the_shortest_history():
    """J6.2: freed when its node is lost, once."""
    lines = lines_of(explore(PermitWorld("unfenced release"), 16).story)
    assert lines[-3:] == [
        "the body ends on a",
        "a gives its permit back: -1 in use",
        "=> nobody is inside, and the gate counts -1 in use",
    ]
