"""Whether and when a failed job is retried: a pure decision, whose order of checks is defined and tested here."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Literal, TypeAlias, TypeVar

from windlass.domain.backoff import Backoff
from windlass.domain.durations import seconds
from windlass.domain.exception_chain import delays_asked, forbidding
from windlass.errors import InvalidOptionError
from windlass.retry_signals import mark_of
from windlass.runtime.error_classes import classes_of
from windlass.spi import RetryPolicy
from windlass.submission.stored_options import RetryRules

NON_RETRYABLE: Final = "non_retryable"
RETRY_EXHAUSTED: Final = "retry_exhausted"
GiveUpReason: TypeAlias = Literal["non_retryable", "retry_exhausted"]

_AT_ONCE = timedelta(0)
_Answer = TypeVar("_Answer")


class DefaultRetryPolicy:
    """Applies only the job's own `max_retries` and `backoff`."""

    def should_retry(self, attempt: int, error: BaseException) -> bool:
        """Return True: never refuse a retry."""
        return True

    def get_delay(self, attempt: int) -> timedelta:
        """Return 0: add no delay."""
        return _AT_ONCE


@dataclass(frozen=True, slots=True)
class RetryAt:
    """Retry after `delay`."""

    delay: timedelta
    note: str = ""
    """What the caller should log, if anything: a policy that raised and was ignored."""


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Fail for good."""

    reason: GiveUpReason
    note: str = ""
    """What the caller should log, if anything: why no retry is allowed, or a policy that raised."""


def decide_retry(
    exc: BaseException,
    attempt: int,
    max_retries: int,
    backoff: Backoff,
    policy: RetryPolicy,
    rules: RetryRules | None = None,
    random: Callable[[], float] | None = None,
) -> RetryAt | GiveUp:
    """Decide what follows attempt number `attempt` (the first is 1), which failed with `exc`.

    In this order: `@do_not_retry` and `DoNotRetry`; the job's own `give_up_on` and `retry_on`; the policy; the number
    of attempts; then the delay, which is the exception's own (`RetryAfter`, the longest if a group holds several), else
    the policy's, else the backoff's.
    """
    forbidden = forbidding(exc)
    if forbidden is not None:
        return GiveUp(NON_RETRYABLE, _why(forbidden, exc))
    if rules is not None and (broken := _broken_rule(rules, exc)):
        return GiveUp(NON_RETRYABLE, broken)
    allowed, note = _ask(lambda: _yes_or_no(policy.should_retry(attempt, exc)), True, "RetryPolicy.should_retry")
    if not allowed:
        return GiveUp(NON_RETRYABLE, "the retry policy refused")
    if attempt > max_retries:
        return GiveUp(RETRY_EXHAUSTED, note)
    if delays := delays_asked(exc):
        asked, delay_note = _ask(lambda: max(map(_duration, delays)), None, "RetryAfter.delay")
        if asked is not None:
            return RetryAt(asked, note)
        return RetryAt(backoff.delay(attempt, random), note or delay_note)
    delay, delay_note = _ask(lambda: _duration(policy.get_delay(attempt)), _AT_ONCE, "RetryPolicy.get_delay")
    return RetryAt(delay or backoff.delay(attempt, random), note or delay_note)


def _why(forbidden: BaseException, exc: BaseException) -> str:
    """Return what to log in addition to the error: no message, which may hold secrets and is in the error's text."""
    if reason := mark_of(type(forbidden)):
        return reason
    return "" if forbidden is exc else f"{type(forbidden).__name__} is behind it"


def _broken_rule(rules: RetryRules, exc: BaseException) -> str | None:
    """Return which of the job's rules forbids a retry of `exc`, as text for the log.

    For a group, one member in `give_up_on` is enough, and all members have to be in `retry_on`. Causes do not count.
    """
    classes = classes_of(exc)
    if classes.any_in(rules.give_up_on):
        return "its class is in give_up_on"
    if rules.retry_on is not None and not classes.all_in(rules.retry_on):
        return "its class is not in retry_on"
    return None


class _InvalidAnswer(Exception):  # noqa: N818 - it never leaves this file
    """A policy returned a value of the wrong type or range."""


def _yes_or_no(answer: object) -> bool:
    if isinstance(answer, bool):
        return answer
    raise _InvalidAnswer(f"answered with {type(answer).__name__}, not True or False")  # most often a forgotten return


def _duration(answer: object) -> timedelta:
    try:  # checked because it is users' code: a negative delay would put the job before all others
        return timedelta(seconds=seconds(answer, "a delay"))
    except InvalidOptionError:
        raise _InvalidAnswer(f"answered with {type(answer).__name__}, not a timedelta of 0 to 100 years") from None


def _ask(question: Callable[[], _Answer], default: _Answer, name: str) -> tuple[_Answer, str]:
    """Call users' code; if it raises or returns an invalid value, use the default and say so in the note."""
    try:
        return question(), ""
    except _InvalidAnswer as rubbish:
        return default, f"{name} {rubbish}; the default was used"
    except Exception as error:  # noqa: BLE001 - a broken policy must not change what happens to jobs
        return default, f"{name} raised {type(error).__name__}; the default was used"  # not its message: secrets
