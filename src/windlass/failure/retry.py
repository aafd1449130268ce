"""Whether a failed job is tried again, and when: a pure decision, whose order of checks is read and tested here."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Literal, TypeAlias, TypeVar

from windlass.domain.backoff import Backoff
from windlass.domain.durations import seconds
from windlass.errors import RetryAfter, do_not_retry_reason
from windlass.spi import RetryPolicy

NON_RETRYABLE: Final = "non_retryable"
RETRY_EXHAUSTED: Final = "retry_exhausted"
GiveUpReason: TypeAlias = Literal["non_retryable", "retry_exhausted"]

_AT_ONCE = timedelta(0)
_Answer = TypeVar("_Answer")


class DefaultRetryPolicy:
    """Leaves everything to the job's own `max_retries` and `backoff`."""

    def should_retry(self, attempt: int, error: BaseException) -> bool:
        """Never refuse."""
        return True

    def get_delay(self, attempt: int) -> timedelta:
        """Add nothing."""
        return _AT_ONCE


@dataclass(frozen=True, slots=True)
class RetryAt:
    """Try again after `delay`."""

    delay: timedelta
    note: str = ""
    """What the caller should log, if anything: a policy that raised, and was passed over."""


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
    random: Callable[[], float] | None = None,
) -> RetryAt | GiveUp:
    """Decide what follows attempt number `attempt` (the first is 1), which failed with `exc`.

    In this order: `@do_not_retry` and `DoNotRetry`; the policy; the number of attempts; then the delay, which is the
    exception's own (`RetryAfter`), else the policy's, else the backoff's.
    """
    forbidden = do_not_retry_reason(exc)
    if forbidden is not None:
        return GiveUp(NON_RETRYABLE, forbidden)
    allowed, note = _ask(lambda: bool(policy.should_retry(attempt, exc)), True, "should_retry")
    if not allowed:
        return GiveUp(NON_RETRYABLE, "the retry policy refused")
    if attempt > max_retries:
        return GiveUp(RETRY_EXHAUSTED, note)
    if isinstance(exc, RetryAfter):  # a subclass may have set the delay itself, as a number
        return RetryAt(timedelta(seconds=seconds(exc.delay, "RetryAfter.delay")), note)
    delay, delay_note = _ask(lambda: _policy_delay(policy, attempt), _AT_ONCE, "get_delay")
    return RetryAt(delay or backoff.delay(attempt, random), note or delay_note)


def _policy_delay(policy: RetryPolicy, attempt: int) -> timedelta:
    # Checked because it is users' code: a negative delay would put the job before all others.
    return timedelta(seconds=seconds(policy.get_delay(attempt), "RetryPolicy.get_delay(...)"))


def _ask(question: Callable[[], _Answer], default: _Answer, name: str) -> tuple[_Answer, str]:
    """Ask the policy; if it raises, the default answers, and the note says so, without its message: secrets."""
    try:
        return question(), ""
    except Exception as error:  # noqa: BLE001 - a broken policy must not decide about jobs by being broken
        return default, f"RetryPolicy.{name} raised {type(error).__name__}; the default was used"
