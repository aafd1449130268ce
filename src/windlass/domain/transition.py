"""A state change as a value.

Whoever decides what becomes of a running job (the verdict, a drain, the poller handing claims back) builds one of
these with a named constructor; `stores.jobs.apply` is the only place that writes them.
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
    """What is kept of an error: already sanitised."""

    error: str
    error_class: str
    traceback: str | None = None
    note: str = ""
    """For the log: why it is given up, where that is not plain. Not stored."""


EXPIRED = "expired"
"""Reason and outcome of a job that had not started by the time it was given."""

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
    """Attempts counted so far once this is written."""
    times: Times
    delay_us: int = 0
    result: str | None = None
    failure: Failure | None = None
    reason: str | None = None
    lane: str | None = None
    releases_business_key: bool = False
    crashes: int = 0
    """1 if the process that ran the body died, which is charged to the job's crash budget."""
    lingers: bool = False
    """Whether the body goes on although its job has ended, and so keeps its places at gates."""

    @property
    def status(self) -> JobStatus:
        """The state of the job once this is written."""
        return ENTERED[self.move]

    @property
    def terminal(self) -> bool:
        """Whether the job is over once this is written."""
        return ENTERED[self.move] in TERMINAL


def succeeded(claim: Claim, times: Times, result: str | None, *, holds_key: bool) -> Transition:
    """The body returned."""
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
    """The attempt failed and another one follows after the delay."""
    number = claim.attempts + 1
    return Transition(
        claim.job_id, claim.fence, Move.REQUEUE, "retried", number, number, times, delay_us, failure=failure
    )


def dead_letter(
    claim: Claim, times: Times, failure: Failure, reason: str, *, holds_key: bool, counted: bool = True
) -> Transition:
    """The job failed for good. `counted` is False when its body was never entered (a denied or unknown target)."""
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
    """Claimed after it had expired: canceled, its body was not entered."""
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


def released(claim: Claim, times: Times, *, outcome: str = "released") -> Transition:
    """Back to its queue as if never claimed: unstarted on drain, or cut off by a forced drain."""
    return Transition(claim.job_id, claim.fence, Move.RELEASE, outcome, claim.attempts + 1, claim.attempts, times)


def snoozed(claim: Claim, times: Times, delay_us: int) -> Transition:
    """The body asked to be run later: due again after the delay, without spending an attempt."""
    return _requeued(claim, times, "snoozed", delay_us)


def _requeued(claim: Claim, times: Times, outcome: str, delay_us: int) -> Transition:
    return released(claim, times, outcome=outcome)._replace(move=Move.REQUEUE, delay_us=delay_us)


def lost(claim: Claim, times: Times, failure: Failure) -> Transition:
    """The process that ran the body died: given out again, without spending an attempt."""
    return released(claim, times, outcome="lost")._replace(failure=failure, crashes=1)


def given_up(claim: Claim, times: Times, failure: Failure, *, holds_key: bool) -> Transition:
    """The process that ran the body died, as too many have before it."""
    last = dead_letter(claim, times, failure, "worker_lost", holds_key=holds_key, counted=False)
    return last._replace(outcome="lost", crashes=1)


def deferred(claim: Claim, times: Times, delay_us: int) -> Transition:
    """Its circuit has opened since it was claimed: due when that may be tried again, without spending an attempt."""
    return _requeued(claim, times, "deferred", delay_us)


def passed_over(claim: Claim, times: Times, lane: str) -> Transition:
    """Left to nodes that know its target: waits in a lane of its own, so no claim of this node meets it again."""
    return released(claim, times, outcome="passed_over")._replace(lane=lane)
