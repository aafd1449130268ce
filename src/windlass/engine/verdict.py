"""The verdict on an attempt: a pure function of how it ended and of the policies."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from windlass.domain.branches import PREDICATE_FAILED, Judgement
from windlass.domain.clock import MICROSECONDS
from windlass.domain.dependencies import NOT_CHOSEN
from windlass.domain.lanes import passed_over_lane
from windlass.domain.transition import (
    NO_FAILURE,
    Failure,
    Times,
    Transition,
    continued,
    dead_letter,
    deferred,
    expired,
    given_up,
    lost,
    not_chosen,
    parked,
    passed_over,
    released,
    retry_at,
    snoozed,
    succeeded,
)
from windlass.engine.attempt import (
    Attempt,
    Deferred,
    Died,
    Directed,
    Ending,
    Expired,
    NotChosen,
    NotKnownHere,
    NotSignaled,
    Raised,
    Refused,
    Released,
    Returned,
    Snoozed,
)
from windlass.errors import SignalTimeoutError, WorkerLostError
from windlass.failure.retry import GiveUp, decide_retry
from windlass.spi import RetryPolicy


class Policies(NamedTuple):
    """The policies that decide about failures."""

    retry: RetryPolicy
    describe: Callable[[BaseException], Failure]
    """Returns an error's text for storage: sanitised."""
    redact: Callable[[str], str]
    """Returns a text for the log, without secrets."""
    crash_budget: int = 3
    """How often a job is run again after its process died."""


def verdict(attempt: Attempt, ending: Ending, policies: Policies) -> Transition:
    """Return the transition of an ended attempt. Nothing is written or logged here."""
    claim, times = attempt.claim, attempt.times()
    match ending:
        case Returned():
            return succeeded(claim, times, ending.result, holds_key=attempt.holds_key)
        case Raised(error):
            return _failed(attempt, times, error, policies)
        case Refused(error, reason):
            failure = policies.describe(error)
            return dead_letter(claim, times, failure, reason, holds_key=attempt.holds_key, counted=False)
        case NotKnownHere(_, predicates):
            return passed_over(claim, times, passed_over_lane(claim.lane, claim.target, predicates))
        case NotChosen(judgement):
            return _not_chosen(attempt, times, judgement)
        case Snoozed(delay):
            return snoozed(claim, times, int(delay * MICROSECONDS))
        case Deferred(delay):
            return deferred(claim, times, int(delay * MICROSECONDS))
        case NotSignaled(error):
            return _not_signaled(attempt, times, error, policies)
        case Directed():
            return _directed(attempt, times, ending)
        case Expired():
            return expired(claim, times, holds_key=attempt.holds_key)
        case Released():
            return released(claim, times)
        case Died(error):
            return _died(attempt, times, error, policies)


def _directed(attempt: Attempt, times: Times, ending: Directed) -> Transition:
    claim, end = attempt.claim, ending.end
    match end.outcome:
        case "succeeded":
            return succeeded(claim, times, end.result, holds_key=attempt.holds_key)
        case "failed":
            failure = end.failure or NO_FAILURE
            return dead_letter(claim, times, failure, end.reason or "non_retryable", holds_key=attempt.holds_key)
        case outcome:
            later = continued(claim, times, outcome, end.delay_us, end.lane)
            return later if end.failure is None else later._replace(failure=end.failure)


def _failed(attempt: Attempt, times: Times, error: BaseException, policies: Policies) -> Transition:
    claim, options = attempt.claim, attempt.options
    decision = decide_retry(error, attempt.number, options.max_retries, options.backoff, policies.retry, options.rules)
    failure = policies.describe(error)._replace(note=decision.note)
    if isinstance(decision, GiveUp):
        return dead_letter(claim, times, failure, decision.reason, holds_key=attempt.holds_key)
    delay_us = int(decision.delay.total_seconds() * MICROSECONDS)
    return retry_at(claim, times, failure, delay_us)


def _not_signaled(attempt: Attempt, times: Times, error: SignalTimeoutError, policies: Policies) -> Transition:
    """Treat it like any failure, except that a retry waits again at once: a signal needs a job that waits for it."""
    failed = _failed(attempt, times, error, policies)
    assert failed.failure is not None
    failure = failed.failure._replace(traceback=None)  # it has only our own frames
    if failed.terminal:
        return failed._replace(failure=failure, reason="signal_timeout")
    wait = attempt.options.wait
    timeout_us = 0 if wait is None or wait.timeout_us is None else wait.timeout_us
    return parked(attempt.claim, times, failure, failed.delay_us + timeout_us)


def _not_chosen(attempt: Attempt, times: Times, judgement: Judgement) -> Transition:
    if judgement.error is None:
        return not_chosen(attempt.claim, times, NOT_CHOSEN, None, holds_key=attempt.holds_key)
    failure = Failure(*judgement.error)
    return not_chosen(attempt.claim, times, PREDICATE_FAILED, failure, holds_key=attempt.holds_key)


def _died(attempt: Attempt, times: Times, error: WorkerLostError, policies: Policies) -> Transition:
    """Treat it like a lost node: not a failure of the body until it happens too often."""
    claim = attempt.claim
    if claim.crash_count < policies.crash_budget:
        return lost(claim, times, policies.describe(error)._replace(traceback=None))
    last = WorkerLostError(f"the job's worker was lost {claim.crash_count + 1} times; the last time {error}")
    return given_up(claim, times, policies.describe(last)._replace(traceback=None), holds_key=attempt.holds_key)


def failed_for_good(attempt: Attempt, error: BaseException, policies: Policies) -> Transition:
    """Return the transition of an attempt for whose ending no verdict could be made."""
    failure = policies.describe(error)._replace(note="no verdict could be made on its outcome")
    return dead_letter(attempt.claim, attempt.times(), failure, "non_retryable", holds_key=attempt.holds_key)
