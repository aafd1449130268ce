"""What becomes of an attempt: a pure function of how it ended and of the policies."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from windlass.domain.transition import Failure, Transition, dead_letter, passed_over, released, retry_at, succeeded
from windlass.engine.attempt import Attempt, Ending, Handed, NotKnownHere, Raised, Refused, Returned, Snoozed
from windlass.failure.retry import GiveUp, decide_retry
from windlass.spi import RetryPolicy
from windlass.stores.queues import TARGET_LANE

MICROSECONDS = 1_000_000


class Policies(NamedTuple):
    """What decides over failures."""

    retry: RetryPolicy
    describe: Callable[[BaseException], Failure]
    """The error as it may be stored: sanitised."""
    redact: Callable[[str], str]
    """A text as it may be logged."""


class Verdict(NamedTuple):
    """The transition to write, and what to log about it."""

    transition: Transition
    note: str = ""


def verdict(attempt: Attempt, ending: Ending, policies: Policies) -> Verdict:
    """Decide. Nothing is written or logged here."""
    claim, times = attempt.claim, attempt.times()
    holds_key = attempt.payload.business_key is not None
    match ending:
        case Returned(result):
            return Verdict(succeeded(claim, times, result, holds_key=holds_key))
        case Raised(error):
            return _failed(attempt, error, policies)
        case Refused(error, reason):
            failure = policies.describe(error)
            return Verdict(dead_letter(claim, times, failure, reason, holds_key=holds_key, counted=False))
        case NotKnownHere():
            return Verdict(passed_over(claim, times, TARGET_LANE + claim.target))
        case Snoozed(delay):
            return Verdict(released(claim, times, outcome="snoozed", delay_us=int(delay * MICROSECONDS)))
        case Handed():
            return Verdict(released(claim, times))


def _failed(attempt: Attempt, error: BaseException, policies: Policies) -> Verdict:
    claim, times, options = attempt.claim, attempt.times(), attempt.options
    failure = policies.describe(error)
    decision = decide_retry(error, attempt.number, options.max_retries, options.backoff, policies.retry)
    if isinstance(decision, GiveUp):
        holds_key = attempt.payload.business_key is not None
        return Verdict(dead_letter(claim, times, failure, decision.reason, holds_key=holds_key), decision.note)
    delay_us = int(decision.delay.total_seconds() * MICROSECONDS)
    return Verdict(retry_at(claim, times, failure, delay_us))


def failed_for_good(attempt: Attempt, error: BaseException, policies: Policies) -> Transition:
    """For an attempt whose ending no verdict could be passed on."""
    holds_key = attempt.payload.business_key is not None
    return dead_letter(attempt.claim, attempt.times(), policies.describe(error), "non_retryable", holds_key=holds_key)
