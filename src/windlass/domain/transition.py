"""A state change as a value.

Code that decides what a running job becomes (the verdict, a drain, the poller releasing claims) builds one of these
with a named constructor; only `stores.plans.jobs.apply` writes them.
"""

from __future__ import annotations

from typing import NamedTuple

from windlass.domain.job import Claim
from windlass.domain.states import ENTERED, TERMINAL, JobStatus, Move


class Times(NamedTuple):
    """When an attempt started and ended, in microseconds of the store's clock, and how long the job had waited."""

    started_at: int | None
    ended_at: int
    wait_us: int | None


class Failure(NamedTuple):
    """The stored part of an error, already sanitised."""

    error: str
    error_class: str
    traceback: str | None = None
    note: str = ""
    """For the log: why it is not retried, where that is not obvious. Not stored."""


NEVER_DUE = -1
"""The delay of a job that is not due before something releases it."""

EXPIRED = "expired"
"""Reason and outcome of a job that had not started by its expiry time."""

NO_FAILURE = Failure("", "")


class Transition(NamedTuple):
    """What a claimed job becomes: `stores.plans.jobs.apply` writes it by its move."""

    job_id: str
    fence: int
    move: Move
    outcome: str
    number: int
    """The attempt's number in the history."""
    attempts: int
    """Attempts counted once this is written."""
    times: Times
    delay_us: int = 0
    result: str | None = None
    failure: Failure | None = None
    reason: str | None = None
    lane: str | None = None
    releases_business_key: bool = False
    crashes: int = 0
    """1 if the process that ran the body died, which counts against the job's crash budget."""
    lingers: bool = False
    """Whether the body still runs although its job has ended, and therefore keeps its permits."""

    @property
    def status(self) -> JobStatus:
        """The state of the job once this is written."""
        return ENTERED[self.move]

    @property
    def terminal(self) -> bool:
        """Whether the job has ended once this is written."""
        return ENTERED[self.move] in TERMINAL


def succeeded(claim: Claim, times: Times, result: str | None, *, holds_key: bool) -> Transition:
    """Return the transition for a body that returned."""
    number = claim.attempts + 1
    return Transition(
        claim.job_id,
        claim.fence,
        Move.SUCCEED,
        "succeeded",
        number,
        number,
        times,
        0,
        result,
        None,
        None,
        None,
        holds_key,
    )


def retry_at(claim: Claim, times: Times, failure: Failure, delay_us: int) -> Transition:
    """Return the transition for a failed attempt that is followed by another after the delay."""
    number = claim.attempts + 1
    return Transition(
        claim.job_id, claim.fence, Move.REQUEUE, "retried", number, number, times, delay_us, failure=failure
    )


def parked(claim: Claim, times: Times, failure: Failure, delay_us: int) -> Transition:
    """Return the transition for a job whose signal did not come in time: it waits again, until after the delay."""
    return retry_at(claim, times, failure, delay_us)._replace(move=Move.PARK)


def dead_letter(
    claim: Claim, times: Times, failure: Failure, reason: str, *, holds_key: bool, counted: bool = True
) -> Transition:
    """Return the transition for a job that failed for good.

    `counted` is False when its body was never entered (a refused or unknown target).
    """
    number = claim.attempts + 1
    return Transition(
        job_id=claim.job_id,
        fence=claim.fence,
        move=Move.FAIL,
        outcome="failed",
        number=number,
        attempts=number if counted else claim.attempts,
        times=times,
        failure=failure,
        reason=reason,
        releases_business_key=holds_key,
    )


def expired(claim: Claim, times: Times, *, holds_key: bool) -> Transition:
    """Return the transition for a job that was claimed after it had expired: canceled without entering its body."""
    return Transition(
        claim.job_id,
        claim.fence,
        Move.CANCEL,
        EXPIRED,
        claim.attempts + 1,
        claim.attempts,
        times,
        reason=EXPIRED,
        releases_business_key=holds_key,
    )


def not_chosen(claim: Claim, times: Times, reason: str, failure: Failure | None, *, holds_key: bool) -> Transition:
    """Return the transition for a guarded follower whose condition does not hold: canceled without its body."""
    return expired(claim, times, holds_key=holds_key)._replace(outcome=reason, reason=reason, failure=failure)


def released(claim: Claim, times: Times, *, outcome: str = "released") -> Transition:
    """Return the transition back to its queue as if never claimed: not started, or cut off by a forced drain."""
    return Transition(claim.job_id, claim.fence, Move.RELEASE, outcome, claim.attempts + 1, claim.attempts, times)


def snoozed(claim: Claim, times: Times, delay_us: int) -> Transition:
    """Return the transition for a body that snoozed: due again after the delay, without spending an attempt."""
    return _requeued(claim, times, "snoozed", delay_us)


def _requeued(claim: Claim, times: Times, outcome: str, delay_us: int) -> Transition:
    return released(claim, times, outcome=outcome)._replace(move=Move.REQUEUE, delay_us=delay_us)


def lost(claim: Claim, times: Times, failure: Failure) -> Transition:
    """Return the transition for a job whose process died: claimed again, without spending an attempt."""
    return released(claim, times, outcome="lost")._replace(failure=failure, crashes=1)


def given_up(claim: Claim, times: Times, failure: Failure, *, holds_key: bool) -> Transition:
    """Return the transition for a job whose processes died more often than its crash budget allows."""
    last = dead_letter(claim, times, failure, "worker_lost", holds_key=holds_key, counted=False)
    return last._replace(outcome="lost", crashes=1)


def continued(claim: Claim, times: Times, outcome: str, delay_us: int, lane: str | None) -> Transition:
    """Return the transition for a job that continues later by its own decision, perhaps in another lane.

    It spends no attempt. `NEVER_DUE`: it waits until something releases it.
    """
    return _requeued(claim, times, outcome, delay_us)._replace(lane=lane)


def deferred(claim: Claim, times: Times, delay_us: int) -> Transition:
    """Return the transition for a job whose circuit has opened since the claim: due when trials are allowed.

    It spends no attempt.
    """
    return _requeued(claim, times, "deferred", delay_us)


def passed_over(claim: Claim, times: Times, lane: str) -> Transition:
    """Return the transition for a job whose target this node does not know.

    It waits in a lane for that target, so that this node does not claim it again.
    """
    return released(claim, times, outcome="passed_over")._replace(lane=lane)
