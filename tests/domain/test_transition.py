"""Every constructor of a transition, row by row."""

from typing import NamedTuple

import pytest

from windlass.domain.job import Claim
from windlass.domain.states import ENTERED, MOVES, JobStatus, Move
from windlass.domain.transition import (
    Failure,
    Times,
    Transition,
    dead_letter,
    deferred,
    expired,
    given_up,
    lost,
    passed_over,
    released,
    retry_at,
    snoozed,
    succeeded,
)

CLAIM = Claim("0198", 7, "mail", "shop:charge", attempts=2, crash_count=1, priority=2, due_at=10, picked_at=20)
TIMES = Times(21, 34, 11)
FAILURE = Failure("KeyError: 'x'", "KeyError", "Traceback")
PENDING, SUCCEEDED, FAILED, CANCELED = (
    JobStatus.PENDING,
    JobStatus.SUCCEEDED,
    JobStatus.FAILED,
    JobStatus.CANCELED,
)


class Row(NamedTuple):
    """What is written of an attempt that ends like this."""

    made: Transition
    move: Move
    status: JobStatus
    outcome: str
    counted: bool
    """Whether the attempt counts as one that was used."""
    terminal: bool
    crashes: int = 0
    failure: Failure | None = None
    reason: str | None = None
    delay_us: int = 0
    frees_key: bool = False
    result: str | None = None
    lane: str | None = None


ROWS = {
    "succeeded": Row(
        succeeded(CLAIM, TIMES, "41", holds_key=False),
        *(Move.SUCCEED, SUCCEEDED, "succeeded"),
        counted=True,
        terminal=True,
        result="41",
    ),
    "succeeded with a business key": Row(
        succeeded(CLAIM, TIMES, None, holds_key=True),
        *(Move.SUCCEED, SUCCEEDED, "succeeded"),
        counted=True,
        terminal=True,
        frees_key=True,
    ),
    "retried": Row(
        retry_at(CLAIM, TIMES, FAILURE, 500),
        *(Move.REQUEUE, PENDING, "retried"),
        counted=True,
        terminal=False,
        failure=FAILURE,
        delay_us=500,
    ),
    "failed for good": Row(
        dead_letter(CLAIM, TIMES, FAILURE, "retry_exhausted", holds_key=True),
        *(Move.FAIL, FAILED, "failed"),
        counted=True,
        terminal=True,
        failure=FAILURE,
        reason="retry_exhausted",
        frees_key=True,
    ),
    "refused, its body not entered": Row(
        dead_letter(CLAIM, TIMES, FAILURE, "target_not_allowed", holds_key=False, counted=False),
        *(Move.FAIL, FAILED, "failed"),
        counted=False,
        terminal=True,
        failure=FAILURE,
        reason="target_not_allowed",
    ),
    "expired": Row(
        expired(CLAIM, TIMES, holds_key=True),
        *(Move.CANCEL, CANCELED, "expired"),
        counted=False,
        terminal=True,
        reason="expired",
        frees_key=True,
    ),
    "released": Row(released(CLAIM, TIMES), Move.RELEASE, PENDING, "released", counted=False, terminal=False),
    "snoozed": Row(
        snoozed(CLAIM, TIMES, 900),
        *(Move.REQUEUE, PENDING, "snoozed"),
        counted=False,
        terminal=False,
        delay_us=900,
    ),
    "deferred": Row(
        deferred(CLAIM, TIMES, 700),
        *(Move.REQUEUE, PENDING, "deferred"),
        counted=False,
        terminal=False,
        delay_us=700,
    ),
    "passed over": Row(
        passed_over(CLAIM, TIMES, "t=shop:charge"),
        *(Move.RELEASE, PENDING, "passed_over"),
        counted=False,
        terminal=False,
        lane="t=shop:charge",
    ),
    "lost": Row(
        lost(CLAIM, TIMES, FAILURE),
        *(Move.RELEASE, PENDING, "lost"),
        counted=False,
        terminal=False,
        crashes=1,
        failure=FAILURE,
    ),
    "lost too often": Row(
        given_up(CLAIM, TIMES, FAILURE, holds_key=True),
        *(Move.FAIL, FAILED, "lost"),
        counted=False,
        terminal=True,
        crashes=1,
        failure=FAILURE,
        reason="worker_lost",
        frees_key=True,
    ),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_each_way_to_end_is_one_transition(row: Row):
    """J2.1, J2.5: status, history row, what is counted, and what is set free."""
    made = row.made
    assert (made.job_id, made.fence, made.times) == (CLAIM.job_id, CLAIM.fence, TIMES)
    assert made.number == CLAIM.attempts + 1, "its place in the history"
    assert made.attempts == CLAIM.attempts + row.counted
    actual = Row(
        made,
        made.move,
        made.status,
        made.outcome,
        made.attempts > CLAIM.attempts,
        made.terminal,
        made.crashes,
        made.failure,
        made.reason,
        made.delay_us,
        made.releases_business_key,
        made.result,
        made.lane,
    )
    assert actual == row
    assert not made.lingers, "known only when its body goes on"


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_a_job_that_stays_live_keeps_its_business_key(row: Row):
    """J1.5: it is live until it has ended."""
    assert not (row.frees_key and row.status is PENDING)


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_only_a_requeue_has_a_delay(row: Row):
    """J3.1: anything else that goes back keeps its due time."""
    assert (row.delay_us > 0) == (row.move is Move.REQUEUE)


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_each_move_is_a_legal_one_of_a_running_job(row: Row):
    """J2.1"""
    assert (JobStatus.RUNNING, row.status) in MOVES[row.move]
    assert ENTERED[row.move] is row.status
