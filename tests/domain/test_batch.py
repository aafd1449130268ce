"""Batches: progress and decisions, as tables."""

import pytest

from windlass.domain.batch import (
    NO_RULES,
    BatchCondition,
    BatchProgress,
    BatchRules,
    LoadState,
    after_batch,
    ways_to_follow,
)
from windlass.domain.dependencies import BATCH, NOT_CHOSEN, UPSTREAM_FAILED, GroupCounts
from windlass.domain.states import JobStatus

S = JobStatus


def counts(total: int, succeeded: int, failed: int, loaded: int = LoadState.DONE) -> GroupCounts:
    return GroupCounts(total, succeeded, failed, BATCH, loaded)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (counts(0, 0, 0, LoadState.OPEN), BatchProgress(0, 0, 0, 0.0, 1.0, complete=False)),
        (counts(0, 0, 0), BatchProgress(0, 0, 0, 100.0, 1.0, complete=True)),
        (counts(4, 0, 0), BatchProgress(4, 0, 0, 0.0, 1.0, complete=False)),
        (counts(4, 1, 0), BatchProgress(4, 1, 0, 25.0, 1.0, complete=False)),
        (counts(4, 1, 1), BatchProgress(4, 1, 1, 50.0, 0.5, complete=False)),
        (counts(4, 4, 0, LoadState.OPEN), BatchProgress(4, 4, 0, 100.0, 1.0, complete=False)),
        (counts(4, 3, 1, LoadState.REVIVING), BatchProgress(4, 3, 1, 100.0, 0.75, complete=False)),
        (counts(4, 3, 1), BatchProgress(4, 3, 1, 100.0, 0.75, complete=True)),
        (counts(4, 0, 4), BatchProgress(4, 0, 4, 100.0, 0.0, complete=True)),
    ],
)
def test_progress_of_counts(given: GroupCounts, expected: BatchProgress):
    """J8.4: total, completed, failed, percent, success rate; complete once all are stored and have ended."""
    assert BatchProgress.of(given) == expected


@pytest.mark.parametrize(
    ("given", "status", "release", "cancel"),
    [
        (counts(0, 0, 0), S.SUCCEEDED, (1,), ((3, NOT_CHOSEN),)),
        (counts(3, 3, 0), S.SUCCEEDED, (1,), ((3, NOT_CHOSEN),)),
        (counts(3, 2, 1), S.FAILED, (3,), ((1, UPSTREAM_FAILED),)),
        (counts(3, 0, 3), S.FAILED, (3,), ((1, UPSTREAM_FAILED),)),
    ],
)
def test_end_of_a_batch(given: GroupCounts, status: JobStatus, release: tuple[int, ...], cancel: object):
    """J8.4: FAILED if any child failed or was canceled; an empty batch succeeds."""
    assert after_batch(given, NO_RULES) == (status, release, cancel, False)


@pytest.mark.parametrize(
    ("condition", "given", "holds"),
    [
        (BatchCondition("rate", 0.95), counts(100, 95, 5), True),
        (BatchCondition("rate", 0.95), counts(100, 94, 6), False),
        (BatchCondition("rate", 0.7), counts(10, 7, 3), True),
        (BatchCondition("rate", 1.0), counts(1_000_000, 999_999, 1), False),
        (BatchCondition("rate", 1.0), counts(3, 3, 0), True),
        (BatchCondition("rate", 0.0), counts(3, 0, 3), True),
        (BatchCondition("rate", 0.95), counts(0, 0, 0), True),
        (BatchCondition("failures", 1), counts(3, 3, 0), False),
        (BatchCondition("failures", 1), counts(3, 2, 1), True),
        (BatchCondition("failures", 2), counts(3, 2, 1), False),
        (BatchCondition("failures", 2), counts(3, 0, 3), True),
    ],
)
def test_condition_on_counts(condition: BatchCondition, given: GroupCounts, holds: bool):
    """J8.4: at least this success rate, or at least so many failures."""
    decision = after_batch(given, BatchRules((condition,)))
    assert (10 in decision.release, (10, NOT_CHOSEN) in decision.cancel) == (holds, not holds)


def test_conditions_are_numbered_in_their_order():
    conditions = (BatchCondition("rate", 0.5), BatchCondition("failures", 9), BatchCondition("failures", 1))
    decision = after_batch(counts(2, 1, 1), BatchRules(conditions))
    assert (decision.release[1:], decision.cancel[1:]) == ((10, 12), ((11, NOT_CHOSEN),))
    assert {*decision.release, *(way for way, _ in decision.cancel)} <= set(ways_to_follow(conditions))
