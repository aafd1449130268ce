"""What stands behind an exception, and what it asks of a retry."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.domain.exception_chain import delays_asked, forbidding, links
from windlass.retry_signals import DoNotRetry, NonRetryable, RetryAfter, do_not_retry


@do_not_retry("a declined card stays declined")
class CardDeclinedError(Exception):
    pass


class StolenCardError(CardDeclinedError):
    pass


def behind(exc: BaseException, *, cause: BaseException | None = None, context: BaseException | None = None):
    """The exception with something behind it, as `raise … from …` and `except` leave it."""
    if cause is not None:
        exc.__cause__ = cause
    exc.__context__ = context if context is not None else cause
    return exc


FORBIDDING = [DoNotRetry("stolen"), CardDeclinedError("declined"), StolenCardError("inherited")]


@pytest.mark.parametrize("final", FORBIDDING, ids=lambda final: type(final).__name__)
class TestForbidding:
    """J5.1, P4.1: DoNotRetry and marked classes count wherever a printed traceback would show them."""

    def test_raised_itself(self, final: Exception):
        """J5.1: raised by the body."""
        assert forbidding(final) is final

    def test_as_cause(self, final: Exception):
        """J5.1, P4.1: `raise … from final`, at any depth."""
        assert forbidding(behind(OSError(), cause=behind(KeyError(), cause=final))) is final

    def test_as_context(self, final: Exception):
        """P4.1: raised while it was being handled."""
        assert forbidding(behind(OSError(), context=final)) is final

    def test_a_suppressed_context_does_not_count(self, final: Exception):
        """J5.1: `raise … from None` cuts the chain on purpose."""

        def cut() -> None:
            try:
                raise final
            except type(final):
                raise OSError("try later") from None

        with pytest.raises(OSError, match="try later") as caught:
            cut()
        assert caught.value.__context__ is final
        assert forbidding(caught.value) is None

    def test_a_context_behind_another_cause_does_not_count(self, final: Exception):
        """J5.1: `raise … from other` inside of `except final` names another cause."""
        error = behind(OSError(), cause=KeyError(), context=final)
        assert error.__suppress_context__
        assert forbidding(error) is None

    def test_inside_nested_groups(self, final: Exception):
        """J5.1, P4.1: anywhere in an exception group, also behind a member's cause."""
        member = behind(OSError(), cause=final)
        group = ExceptionGroup("outer", [ValueError(), ExceptionGroup("inner", [KeyError(), member])])
        assert forbidding(group) is final
        assert forbidding(BaseExceptionGroup("base", [SystemExit(), group])) is final

    def test_behind_a_group(self, final: Exception):
        """J5.1: groups have causes, too."""
        assert forbidding(behind(ExceptionGroup("several", [OSError()]), cause=final)) is final

    def test_at_the_end_of_a_chain_deeper_than_the_stack(self, final: Exception):
        exc: BaseException = final
        for _ in range(5_000):
            exc = behind(OSError(), context=exc)
        assert forbidding(exc) is final

    def test_in_groups_nested_deeper_than_the_stack(self, final: Exception):
        exc: Exception = final
        for _ in range(5_000):
            exc = ExceptionGroup("", [exc])
        assert forbidding(exc) is final


def test_the_alias_is_the_same_class():
    """P4.1: `NonRetryable` is `DoNotRetry`."""
    assert NonRetryable is DoNotRetry


def test_the_outermost_matching_exception_is_named():
    outer = behind(DoNotRetry("outer"), cause=CardDeclinedError())
    assert forbidding(outer) is outer


def test_a_circular_chain_ends():
    first, second, third = OSError(), KeyError(), ValueError()
    first.__cause__, second.__cause__ = second, first
    third.__context__ = third
    assert list(links(first)) == [first, second]
    assert forbidding(ExceptionGroup("circles", [first, third])) is None


@given(st.lists(st.sampled_from(["cause", "context", "group"]), max_size=8), st.booleans())
def test_any_wrapping_finds_it_if_and_only_if_it_is_there(wrappings: list[str], present: bool):
    """J5.1, P4.1: however causes, contexts and groups are nested."""
    final = DoNotRetry("here")
    exc: Exception = final if present else KeyError("plain")
    for wrapping in wrappings:
        if wrapping == "group":
            exc = ExceptionGroup("several", [OSError(), exc])
        else:
            exc = behind(OSError(), **{wrapping: exc})
    assert forbidding(exc) is (final if present else None)


def seconds_asked(exc: BaseException) -> list[float]:
    return [delay.total_seconds() for delay in delays_asked(exc) if isinstance(delay, timedelta)]


def test_the_outermost_retry_after_of_a_chain_counts():
    """J5.2: `raise RetryAfter(5) from RetryAfter(60)` is five seconds; a plain error around one does not hide it."""
    assert seconds_asked(behind(RetryAfter(5), cause=RetryAfter(60))) == [5]
    assert seconds_asked(behind(OSError(), cause=behind(KeyError(), context=RetryAfter(60)))) == [60]
    assert seconds_asked(OSError()) == []


def test_every_retry_after_of_a_group_counts():
    """J5.2: a task group wraps what its tasks raise."""
    inner = ExceptionGroup("inner", [RetryAfter(30), behind(OSError(), cause=RetryAfter(7))])
    assert sorted(seconds_asked(ExceptionGroup("tasks", [RetryAfter(20), inner]))) == [7, 20, 30]
