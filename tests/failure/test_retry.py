"""The retry decision, case by case."""

from dataclasses import dataclass
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.domain.backoff import Backoff
from windlass.failure.retry import DefaultRetryPolicy, GiveUp, RetryAt, decide_retry
from windlass.retry_signals import DoNotRetry, RetryAfter, do_not_retry
from windlass.spi import RetryPolicy
from windlass.submission.stored_options import RetryRules

ZERO = timedelta(0)
NONE = Backoff.none()
TEN = Backoff.fixed(10)
BY_POLICY = "the retry policy refused"


@do_not_retry("declined for good")
class DeclinedError(Exception):
    pass


class StolenCardError(DeclinedError):
    pass


@do_not_retry
class MalformedError(Exception):
    pass


class Impatient(RetryAfter):
    def __init__(self) -> None:
        super().__init__(1)
        self.delay = "soon"  # type: ignore[assignment]


@dataclass
class Policy:
    """A policy that gives, or raises, what it was made with."""

    retry: object = True
    delay: object = ZERO

    def should_retry(self, attempt: int, error: BaseException) -> bool:
        return self._give(self.retry)

    def get_delay(self, attempt: int) -> timedelta:
        return self._give(self.delay)

    def _give(self, value):
        if isinstance(value, BaseException):
            raise value
        return value


def caused(error: BaseException, cause: BaseException) -> BaseException:
    error.__cause__ = cause
    return error


def after(seconds: float, note: str = "") -> RetryAt:
    return RetryAt(timedelta(seconds=seconds), note)


plain = ValueError("x")
plain_too = ValueError("y")
default = DefaultRetryPolicy()
BEHIND = "DoNotRetry is behind it"
RUBBISH = "{} answered with {}, not a timedelta of 0 to 100 years; the default was used"
RAISED = "RetryPolicy.{} raised KeyError; the default was used"


@pytest.mark.parametrize(
    ("exc", "attempt", "max_retries", "backoff", "policy", "expected"),
    [
        # J5.1: the order of checks
        (plain, 1, 0, NONE, default, GiveUp("retry_exhausted")),
        (plain, 1, 1, NONE, default, after(0)),
        (plain, 3, 3, NONE, default, after(0)),
        (plain, 4, 3, NONE, default, GiveUp("retry_exhausted")),
        (DeclinedError(), 1, 9, NONE, default, GiveUp("non_retryable", "declined for good")),
        (StolenCardError(), 1, 9, NONE, default, GiveUp("non_retryable", "declined for good")),
        (MalformedError(), 1, 9, NONE, default, GiveUp("non_retryable", "")),
        (DoNotRetry("s3cret"), 1, 9, NONE, default, GiveUp("non_retryable", "")),
        (caused(ValueError(), DoNotRetry("s3cret")), 1, 9, NONE, default, GiveUp("non_retryable", BEHIND)),
        (caused(ValueError(), StolenCardError()), 1, 9, NONE, default, GiveUp("non_retryable", "declined for good")),
        (
            ExceptionGroup("g", [plain, DeclinedError()]),
            1,
            9,
            NONE,
            default,
            GiveUp("non_retryable", "declined for good"),
        ),
        (DeclinedError(), 9, 0, NONE, Policy(retry=False), GiveUp("non_retryable", "declined for good")),
        (plain, 1, 9, NONE, Policy(retry=False), GiveUp("non_retryable", BY_POLICY)),
        (plain, 9, 0, NONE, Policy(retry=False), GiveUp("non_retryable", BY_POLICY)),
        # J5.2: the delay
        (plain, 1, 9, TEN, default, after(10)),
        (plain, 3, 9, Backoff.exponential(1), default, after(4)),
        (plain, 1, 9, TEN, Policy(delay=timedelta(days=2)), after(2 * 86_400)),
        (plain, 1, 9, TEN, Policy(delay=7), after(7)),
        (RetryAfter(5), 1, 9, TEN, Policy(delay=timedelta(7)), after(5)),
        (RetryAfter(0), 1, 9, TEN, Policy(delay=timedelta(7)), after(0)),
        (RetryAfter(5), 2, 1, TEN, default, GiveUp("retry_exhausted")),
        (RetryAfter(5), 1, 9, TEN, Policy(retry=False), GiveUp("non_retryable", BY_POLICY)),
        (caused(RetryAfter(5), DoNotRetry("stop")), 1, 9, TEN, default, GiveUp("non_retryable", BEHIND)),
        (caused(plain_too, RetryAfter(5)), 1, 9, TEN, Policy(delay=timedelta(7)), after(5)),
        (caused(plain_too, RetryAfter(5)), 2, 1, TEN, default, GiveUp("retry_exhausted")),
        (ExceptionGroup("g", [RetryAfter(5), plain, RetryAfter(8)]), 1, 9, TEN, default, after(8)),
        (Impatient(), 1, 9, TEN, Policy(delay=timedelta(7)), after(10, RUBBISH.format("RetryAfter.delay", "str"))),
        # a policy that raises counts as the default one
        (plain, 1, 9, TEN, Policy(retry=KeyError("s3cret")), after(10, RAISED.format("should_retry"))),
        (plain, 1, 0, TEN, Policy(retry=KeyError()), GiveUp("retry_exhausted", RAISED.format("should_retry"))),
        (plain, 1, 9, TEN, Policy(delay=KeyError()), after(10, RAISED.format("get_delay"))),
        (RetryAfter(5), 1, 9, TEN, Policy(delay=KeyError()), after(5)),
    ],
)
def test_a_failed_attempt_is_retried_or_becomes_a_dead_letter(exc, attempt, max_retries, backoff, policy, expected):
    """J5.1, J5.2: do_not_retry, the policy, the counter, in this order; and RetryAfter, the policy's delay, backoff."""
    assert decide_retry(exc, attempt, max_retries, backoff, policy) == expected


GIVEN_UP = GiveUp("non_retryable", "its class is in give_up_on")
NOT_LISTED = GiveUp("non_retryable", "its class is not in retry_on")
NETWORK = RetryRules(retry_on=frozenset({"builtins:ConnectionError", "builtins:TimeoutError"}))
NO_KEY_ERRORS = RetryRules(give_up_on=frozenset({"builtins:KeyError"}))
refused = ConnectionRefusedError("x")


@pytest.mark.parametrize(
    ("exc", "rules", "expected"),
    [
        (refused, NETWORK, after(0)),  # a subclass
        (plain, NETWORK, NOT_LISTED),
        (caused(ValueError(), refused), NETWORK, NOT_LISTED),  # causes do not count
        (caused(ConnectionError(), plain), NETWORK, after(0)),
        (ExceptionGroup("g", [refused, TimeoutError()]), NETWORK, after(0)),
        (ExceptionGroup("g", [refused, ExceptionGroup("h", [plain])]), NETWORK, NOT_LISTED),
        (ExceptionGroup("g", [plain]), RetryRules(frozenset({"builtins:ExceptionGroup"})), after(0)),
        (plain, NO_KEY_ERRORS, after(0)),
        (KeyError(), NO_KEY_ERRORS, GIVEN_UP),
        (ExceptionGroup("g", [plain, ExceptionGroup("h", [KeyError()])]), NO_KEY_ERRORS, GIVEN_UP),
        (ConnectionError(), RetryRules(NETWORK.retry_on, frozenset({"builtins:OSError"})), GIVEN_UP),
        (RetryAfter(5), NETWORK, NOT_LISTED),
        (RetryAfter(5), RetryRules(frozenset({"windlass.retry_signals:RetryAfter"})), after(5)),
        (
            StolenCardError(),
            RetryRules(frozenset({"builtins:Exception"})),
            GiveUp("non_retryable", "declined for good"),
        ),
        (KeyboardInterrupt(), RetryRules(frozenset({"builtins:Exception"})), NOT_LISTED),
        (SystemExit(), RetryRules(frozenset({"builtins:BaseException"})), after(0)),
        (refused, RetryRules(frozenset({"gone.module:NoError"})), NOT_LISTED),
    ],
)
def test_retry_on_and_give_up_on_decide_before_the_policy(exc: BaseException, rules: RetryRules, expected: object):
    """J5.1: `give_up_on` and `retry_on` come after the marks and before the policy, which is not asked."""
    asked = Policy(retry=isinstance(expected, RetryAt))
    assert decide_retry(exc, 1, 9, NONE, asked, rules) == expected


@pytest.mark.parametrize("nonsense", [timedelta(seconds=-1), -1, "soon", None, float("nan"), float("inf"), True])
def test_a_policy_that_returns_no_duration_is_ignored_and_logged(nonsense: object):
    """J5.2: the job's backoff decides."""
    note = RUBBISH.format("RetryPolicy.get_delay", type(nonsense).__name__)
    assert decide_retry(plain, 1, 1, TEN, Policy(delay=nonsense)) == after(10, note)


@pytest.mark.parametrize("nonsense", [None, 0, 1, "no", timedelta(0), []])
def test_a_policy_that_returns_no_bool_is_ignored_and_logged(nonsense: object):
    """J5.1: most often a forgotten `return`, which must not end every job of an application."""
    given = type(nonsense).__name__
    note = f"RetryPolicy.should_retry answered with {given}, not True or False; the default was used"
    assert decide_retry(plain, 1, 1, TEN, Policy(retry=nonsense)) == after(10, note)
    assert decide_retry(plain, 1, 0, TEN, Policy(retry=nonsense)) == GiveUp("retry_exhausted", note)


def test_the_policy_gets_the_attempt_and_the_error():
    asked: list[object] = []

    class Recording:
        def should_retry(self, attempt: int, error: BaseException) -> bool:
            asked.append((attempt, error))
            return True

        def get_delay(self, attempt: int) -> timedelta:
            asked.append(attempt)
            return ZERO

    decide_retry(plain, 3, 5, NONE, Recording())
    assert asked == [(3, plain), 3]


def test_jitter_takes_the_random_numbers_it_is_given():
    backoff = Backoff.exponential(10, jitter=0.5)
    assert decide_retry(plain, 1, 1, backoff, default, random=lambda: 0.0) == after(10)
    assert decide_retry(plain, 1, 1, backoff, default, random=lambda: 1.0) == after(5)


@given(st.integers(1, 50), st.integers(0, 50))
def test_with_the_default_policy_the_counter_alone_decides(attempt: int, max_retries: int):
    """J5.1: `attempt <= max_retries`, else dead letter."""
    retried = isinstance(decide_retry(plain, attempt, max_retries, NONE, default), RetryAt)
    assert retried == (attempt <= max_retries)


def test_the_default_policy_is_a_policy():
    policy: RetryPolicy = DefaultRetryPolicy()
    assert policy.should_retry(1, plain)
    assert policy.get_delay(1) == ZERO
