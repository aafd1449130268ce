"""What the end of a job or a group does to its followers, by table."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.domain.dependencies import (
    Edge,
    FollowerDecision,
    Follows,
    GroupCounts,
    after_job,
    after_members,
    depth_first,
    nested,
    reason_for,
)
from windlass.domain.states import JobStatus

THEN, SUCCESS, FAILURE, ALWAYS = Follows.THEN, Follows.SUCCESS, Follows.FAILURE, Follows.ALWAYS
DECIDED = frozenset({Follows.DECIDED})
NOTHING: frozenset[Follows] = frozenset()


@pytest.mark.parametrize(
    ("status", "released", "canceled", "guarded", "reason", "reason_of_branches"),
    [
        (JobStatus.SUCCEEDED, {THEN, SUCCESS, ALWAYS}, {FAILURE}, DECIDED, "not_chosen", "not_chosen"),
        (JobStatus.FAILED, {FAILURE, ALWAYS}, {THEN, SUCCESS}, DECIDED, "upstream_failed", "not_chosen"),
        (JobStatus.CANCELED, set(), set(Follows), set(), "upstream_canceled", "upstream_canceled"),
    ],
)
def test_followers_of_a_job(
    status: JobStatus, released: set, canceled: set, guarded: set, reason: str, reason_of_branches: str
):
    """J8.1, J8.2: a cancel releases nothing; undecided followers are released with a guard."""
    assert after_job(status) == FollowerDecision(frozenset(released), frozenset(canceled), frozenset(guarded))
    assert reason_for(status) == reason
    assert reason_for(status, SUCCESS) == reason_of_branches


@pytest.mark.parametrize(
    ("counts", "released", "canceled"),
    [
        (GroupCounts(3, 0, 0), NOTHING, NOTHING),
        (GroupCounts(3, 2, 0), NOTHING, NOTHING),
        (GroupCounts(3, 0, 1), NOTHING, {THEN}),
        (GroupCounts(3, 1, 1), NOTHING, {THEN}),
        (GroupCounts(3, 2, 1), {FAILURE, ALWAYS}, {THEN, SUCCESS}),
        (GroupCounts(3, 0, 3), {FAILURE, ALWAYS}, {THEN, SUCCESS}),
        (GroupCounts(3, 3, 0), {THEN, SUCCESS, ALWAYS}, {FAILURE}),
        (GroupCounts(1, 1, 0), {THEN, SUCCESS, ALWAYS}, {FAILURE}),
    ],
    ids=str,
)
def test_followers_of_a_group(counts: GroupCounts, released: set, canceled: set):
    """J8.3: the first failure cancels what needs all members; the rest is decided when all have ended."""
    decision = after_members(counts)
    assert (decision.release, decision.cancel) == (frozenset(released), frozenset(canceled))


def test_a_walk_goes_down_one_branch_before_the_next():
    """J2.2: in the order of ids among those at one parent."""
    edges = [Edge("d", "b"), Edge("b", "a"), Edge("c", "a"), Edge("e", "c"), Edge("z", "group")]
    assert depth_first(edges) == ["b", "d", "c", "e", "z"]


@given(st.lists(st.integers(0, 200), max_size=60))
def test_a_walk_meets_everything_once_and_parents_first(parents: list[int]):
    """J2.2: whatever the tree."""
    edges = [Edge(f"{number:04}", f"{min(parent, number - 1):04}") for number, parent in enumerate(parents, start=1)]
    order = depth_first(edges)
    assert sorted(order) == sorted(edge.job_id for edge in edges)
    position = {job: place for place, job in enumerate(order)}
    assert all(position.get(edge.parent_id, -1) < position[edge.job_id] for edge in edges)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (None, [1, 2, 3, 4]),
        ([4], [1, 2, 3, 4]),
        ([1, [2], 1], [1, [2, 3], 4]),
        ([[1, [2]], [1]], [[1, [2, 3]], [4]]),
        ([[[[4]]]], [[[[1, 2, 3, 4]]]]),
    ],
)
def test_results_have_the_form_of_their_group(shape: list | None, expected: list):
    """J8.3: nested groups as nested lists."""
    assert nested([1, 2, 3, 4], shape) == expected
