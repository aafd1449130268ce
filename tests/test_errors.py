"""The exception tree, and which exceptions forbid a retry."""

import copy
import inspect
import pickle
from datetime import timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass import errors
from windlass.errors import (
    ConfigurationError,
    DoNotRetry,
    DuplicateBusinessKeyError,
    InvalidOptionError,
    JobCanceledError,
    JobFailedError,
    JobNotFoundError,
    NonRetryable,
    RetryAfter,
    SerializationError,
    WindlassError,
    do_not_retry,
    do_not_retry_reason,
)

JOB = UUID("0198c0de-0000-7000-8000-000000000001")

CLASSES = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, BaseException)]

WITH_FIELDS = [
    DuplicateBusinessKeyError("order:7", JOB),
    JobNotFoundError(JOB),
    JobFailedError(JOB, "max_retries", "ValueError: no", "ValueError"),
    JobCanceledError(JOB),
    RetryAfter(30, "rate limited"),
]


@do_not_retry("a declined card stays declined")
class CardDeclinedError(Exception):
    pass


class StolenCardError(CardDeclinedError):
    pass


@do_not_retry
class MalformedOrderError(ValueError):
    pass


def raised(exc: Exception, *, cause: Exception | None = None, context: Exception | None = None) -> Exception:
    """`exc` as it is after `raise exc from cause`, or after a plain raise while `context` was being handled."""
    with pytest.raises(type(exc)) as caught:  # noqa: PT012 - the shapes of raising are the point
        if cause is not None:
            raise exc from cause
        try:
            raise context or KeyError
        except Exception:  # noqa: BLE001 - whatever was given
            raise exc  # noqa: B904 - the implicit context is the point
    return caught.value


@pytest.mark.parametrize("kind", CLASSES)
def test_every_exception_is_a_windlass_error_drawn_in_the_tree_and_exported(kind):
    assert issubclass(kind, WindlassError)
    assert kind.__name__ in (errors.__doc__ or "")
    assert kind.__name__ in errors.__all__
    assert kind.__doc__


def test_configuration_and_serialization_errors_are_also_the_builtin_ones():
    assert issubclass(ConfigurationError, ValueError)
    assert issubclass(InvalidOptionError, ConfigurationError)
    assert issubclass(SerializationError, TypeError)


@pytest.mark.parametrize("error", WITH_FIELDS, ids=lambda error: type(error).__name__)
def test_errors_with_fields_survive_pickle_and_copy(error):
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(twin) is type(error)
        assert str(twin) == str(error)
        assert vars(twin) == vars(error)


def test_a_duplicate_business_key_names_the_key_and_its_holder():
    """The error names the holder."""
    error = DuplicateBusinessKeyError("order:7", JOB)
    assert (error.key, error.holder) == ("order:7", JOB)
    assert "'order:7'" in str(error)
    assert str(JOB) in str(error)
    assert "on_conflict" in str(error)


def test_a_failed_job_tells_id_reason_and_error():
    error = JobFailedError(JOB, "max_retries", "ValueError: no", "ValueError")
    assert (error.job_id, error.reason, error.error, error.error_class) == (
        JOB,
        "max_retries",
        "ValueError: no",
        "ValueError",
    )
    assert str(error) == f"job {JOB} failed (max_retries): ValueError: no"


class TestRetryAfter:
    @pytest.mark.parametrize("delay", [0, 1.5, 30, timedelta(minutes=1)])
    def test_takes_seconds_or_a_timedelta(self, delay):
        """J5.2: the exception's own delay."""
        expected = delay if isinstance(delay, timedelta) else timedelta(seconds=delay)
        assert RetryAfter(delay).delay == expected

    def test_has_a_message_also_when_none_was_given(self):
        assert str(RetryAfter(30)) == "retry after 30 s"
        assert str(RetryAfter(30, "rate limited")) == "rate limited"

    @pytest.mark.parametrize(
        "delay", [-1, float("nan"), float("inf"), 1e300, 10**400, True, "5", None, timedelta(-1), timedelta.max]
    )
    def test_refuses_what_is_no_delay(self, delay):
        with pytest.raises(InvalidOptionError, match="RetryAfter: delay must be"):
            RetryAfter(delay)

    def test_does_not_forbid_a_retry(self):
        """J5.2: RetryAfter passes the same checks as any failure."""
        assert do_not_retry_reason(RetryAfter(1)) is None


class TestMark:
    def test_a_plain_exception_allows_a_retry(self):
        """J5.1: without a mark the checks go on."""
        assert do_not_retry_reason(ValueError("x")) is None

    def test_a_marked_class_forbids_it_with_its_reason(self):
        """J5.1: the mark with a reason."""
        assert do_not_retry_reason(CardDeclinedError()) == "a declined card stays declined"

    def test_a_bare_mark_forbids_it_without_a_reason(self):
        """J5.1: the bare mark."""
        assert do_not_retry_reason(MalformedOrderError()) == ""

    def test_empty_brackets_are_a_bare_mark(self):
        @do_not_retry()
        class OddError(Exception):
            pass

        assert do_not_retry_reason(OddError()) == ""

    def test_a_mark_on_any_base_counts(self):
        """J5.1: the exception class or any base."""

        class LostCardError(LookupError, StolenCardError):
            pass

        assert do_not_retry_reason(LostCardError()) == "a declined card stays declined"

    def test_a_mark_on_a_subclass_leaves_its_base_alone(self):
        assert do_not_retry_reason(ValueError()) is None

    def test_wrapping_a_marked_exception_in_an_unmarked_one_allows_a_retry(self):
        """J5.1: the mark is looked for on the class that was raised, not on its causes."""
        assert do_not_retry_reason(raised(OSError("try later"), cause=CardDeclinedError())) is None

    def test_a_marked_member_of_a_group_counts(self):
        """J5.1: a task group wraps what the body raised; the wrapper must not hide the mark."""
        group = ExceptionGroup("tasks", [OSError(), ExceptionGroup("inner", [StolenCardError()])])
        assert do_not_retry_reason(group) == "a declined card stays declined"

    @pytest.mark.parametrize("wrong", [int, 7, None, print])
    def test_refuses_what_is_no_exception_class(self, wrong):
        with pytest.raises(ConfigurationError, match="goes on an exception class"):
            do_not_retry(wrong)

    def test_refuses_a_builtin_and_says_what_to_do(self):
        with pytest.raises(ConfigurationError, match="mark a subclass"):
            do_not_retry(KeyError)


class TestDoNotRetryChain:
    def test_the_alias_is_the_same_class(self):
        assert NonRetryable is DoNotRetry

    def test_raised_itself(self):
        """J5.1: raised by the body."""
        assert do_not_retry_reason(DoNotRetry("stolen")) == "stolen"
        assert do_not_retry_reason(DoNotRetry()) == ""

    def test_as_cause(self):
        """J5.1: caused by DoNotRetry."""
        assert do_not_retry_reason(raised(OSError(), cause=raised(KeyError(), cause=DoNotRetry("deep")))) == "deep"

    def test_as_context(self):
        """J5.1: raised while DoNotRetry was being handled."""
        assert do_not_retry_reason(raised(OSError(), context=DoNotRetry("handled"))) == "handled"

    def test_a_suppressed_context_does_not_count(self):
        """J5.1: `raise … from None` cuts the chain on purpose."""
        exc = raised(OSError(), context=DoNotRetry("gone"))
        exc.__suppress_context__ = True
        assert do_not_retry_reason(exc) is None

    def test_inside_nested_groups(self):
        """J5.1: anywhere in an exception group, also behind a member's cause."""
        member = raised(OSError(), cause=DoNotRetry("inside"))
        group = ExceptionGroup("outer", [ValueError(), ExceptionGroup("inner", [KeyError(), member])])
        assert do_not_retry_reason(group) == "inside"

    def test_a_circular_chain_ends(self):
        first, second = OSError(), KeyError()
        first.__cause__, second.__cause__ = second, first
        assert do_not_retry_reason(first) is None

    def test_a_chain_deeper_than_the_stack_is_walked(self):
        exc: BaseException = DoNotRetry("bottom")
        for _ in range(5_000):
            above = OSError()
            above.__context__ = exc
            exc = above
        assert do_not_retry_reason(exc) == "bottom"

    def test_a_broken_text_does_not_break_the_answer(self):
        class RudeError(DoNotRetry):
            def __str__(self):
                raise RuntimeError("no text")

        assert do_not_retry_reason(RudeError()) == ""

    @given(st.lists(st.sampled_from(["cause", "context", "group"]), max_size=8), st.booleans())
    def test_any_wrapping_finds_it_if_and_only_if_it_is_there(self, wrappings, present):
        """J5.1: however causes, contexts and groups are nested."""
        exc: Exception = DoNotRetry("here") if present else KeyError("plain")
        for wrapping in wrappings:
            if wrapping == "group":
                exc = ExceptionGroup("several", [OSError(), exc])
            else:
                exc = raised(OSError(), **{wrapping: exc})
        assert do_not_retry_reason(exc) == ("here" if present else None)
