"""The exception tree, and which exceptions forbid a retry."""

import copy
import inspect
import pickle
from datetime import timedelta
from uuid import UUID

import pytest

from windlass import errors
from windlass.errors import (
    ConfigurationError,
    DuplicateBusinessKeyError,
    InvalidOptionError,
    JobCanceledError,
    JobFailedError,
    JobNotFoundError,
    SerializationError,
    WindlassError,
)
from windlass.retry_signals import RetryAfter, do_not_retry, mark_of

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


def test_the_error_of_a_failed_job_has_id_reason_and_error():
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
        assert mark_of(RetryAfter) is None


class TestMark:
    def test_a_plain_exception_allows_a_retry(self):
        """J5.1: without a mark the checks go on."""
        assert mark_of(ValueError) is None

    def test_a_marked_class_forbids_it_with_its_reason(self):
        """J5.1: the mark with a reason."""
        assert mark_of(CardDeclinedError) == "a declined card stays declined"

    def test_a_bare_mark_forbids_it_without_a_reason(self):
        """J5.1: the bare mark."""
        assert mark_of(MalformedOrderError) == ""

    def test_empty_brackets_are_a_bare_mark(self):
        @do_not_retry()
        class OddError(Exception):
            pass

        assert mark_of(OddError) == ""

    def test_a_mark_on_any_base_counts(self):
        """J5.1: the exception class or any base."""

        class LostCardError(LookupError, StolenCardError):
            pass

        assert mark_of(LostCardError) == "a declined card stays declined"

    def test_a_mark_on_a_subclass_does_not_affect_its_base(self):
        assert mark_of(ValueError) is None

    @pytest.mark.parametrize("wrong", [int, 7, None, print])
    def test_refuses_what_is_no_exception_class(self, wrong):
        with pytest.raises(ConfigurationError, match="goes on an exception class"):
            do_not_retry(wrong)

    def test_refuses_a_builtin_with_advice(self):
        with pytest.raises(ConfigurationError, match="mark a subclass"):
            do_not_retry(KeyError)
