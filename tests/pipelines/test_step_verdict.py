"""What follows a failed step: a table of the pure decision."""

import pytest

from windlass import DoNotRetry, RejectItem, RetryAfter
from windlass.domain.step_options import StepOptions
from windlass.failure.retry import DefaultRetryPolicy
from windlass.pipelines.step_verdict import FailExecution, RejectValue, RetryStep, step_verdict

LATER = ConnectionError("later")
RECOVERS = StepOptions(recover_on_failure=True, retry_limit=1)


def caused() -> BaseException:
    try:
        try:
            raise DoNotRetry("stolen")
        except DoNotRetry as inner:
            raise ValueError("outer") from inner
    except ValueError as error:
        return error


@pytest.mark.parametrize(
    ("error", "attempt", "options", "expected"),
    [
        (LATER, 1, StepOptions(jitter=False), (RetryStep, 1_000_000)),
        (LATER, 3, StepOptions(jitter=False), (RetryStep, 4_000_000)),
        (LATER, 5, StepOptions(jitter=False, max_backoff=3), (RetryStep, 3_000_000)),
        (LATER, 1, StepOptions(), (RetryStep, 500_000)),
        (RetryAfter(7), 1, StepOptions(), (RetryStep, 7_000_000)),
        (LATER, 6, StepOptions(), (FailExecution, "retry_exhausted")),
        (LATER, 1, StepOptions(retry_limit=0), (FailExecution, "retry_exhausted")),
        (DoNotRetry("no"), 1, StepOptions(), (FailExecution, "non_retryable")),
        (LATER, 2, RECOVERS, (RejectValue, "retry_exhausted")),
        (DoNotRetry("no"), 1, RECOVERS, (RejectValue, "non_retryable")),
        (RejectItem("no price"), 1, StepOptions(), (RejectValue, "rejected")),
    ],
)
def test_verdict_follows_the_error_the_attempt_and_the_options(
    error: BaseException, attempt: int, options: StepOptions, expected: tuple[type, object]
):
    """P4.1, P4.2, P5.1, P1.3: with half of the jitter left to chance."""
    found = step_verdict(error, attempt, options, DefaultRetryPolicy(), lambda: 0.5)
    kind, value = expected
    assert isinstance(found, kind)
    assert (found.delay_us if isinstance(found, RetryStep) else found.reason) == value


def test_the_recorded_error_is_the_inner_one_that_forbids_a_retry():
    """P4.1: anywhere in the chain of causes."""
    found = step_verdict(caused(), 1, StepOptions(), DefaultRetryPolicy())
    assert isinstance(found, FailExecution)
    assert str(found.error) == "stolen"
