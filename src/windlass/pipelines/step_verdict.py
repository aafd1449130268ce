"""The verdict on a failed step: a pure decision from the error, the options and the number of the try."""

from __future__ import annotations

import random as randomness
from collections.abc import Callable
from typing import NamedTuple

from windlass.domain.backoff import Backoff
from windlass.domain.clock import MICROSECONDS
from windlass.domain.exception_chain import forbidding
from windlass.domain.step_options import StepOptions
from windlass.execution_errors import RejectSinkError
from windlass.failure.retry import GiveUp, decide_retry
from windlass.retry_signals import RejectItem
from windlass.spi import RetryPolicy


class RetryStep(NamedTuple):
    """The step is tried again after a delay."""

    delay_us: int
    error: BaseException


class RejectValue(NamedTuple):
    """The item is given up, and its execution goes on."""

    error: BaseException
    reason: str


class FailExecution(NamedTuple):
    """The execution fails for good."""

    error: BaseException
    reason: str


StepVerdict = RetryStep | RejectValue | FailExecution


def step_verdict(
    error: BaseException,
    attempt: int,
    options: StepOptions,
    policy: RetryPolicy,
    random: Callable[[], float] = randomness.random,
) -> StepVerdict:
    """Decide what follows try number `attempt` (the first is 1) of a step, which failed with `error`.

    `RejectItem` gives the item up without a retry; after the last retry `recover_on_failure` does, but for a sink that
    did not take a reject. The error that is recorded is the inner one, if that forbids a retry.
    """
    if isinstance(error, RejectSinkError):  # the chain of its causes is about the item
        if attempt > options.retry_limit:
            return FailExecution(error, "retry_exhausted")
        return RetryStep(int(options.delay_after(attempt, random) * MICROSECONDS), error)
    if isinstance(error, RejectItem):
        return RejectValue(error, "rejected")
    decision = decide_retry(error, attempt, options.retry_limit, _NO_BACKOFF, policy)
    if isinstance(decision, GiveUp):
        recorded = forbidding(error) or error
        if options.recover_on_failure:
            return RejectValue(recorded, decision.reason)
        return FailExecution(recorded, decision.reason)
    asked = decision.delay.total_seconds()
    delay = asked or options.delay_after(attempt, random)
    return RetryStep(int(delay * MICROSECONDS), error)


_NO_BACKOFF = Backoff.none()
