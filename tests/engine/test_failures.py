"""Whether a failed job is tried again, when, and what is kept of its error."""

import logging
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from tests.engine import jobs
from tests.engine.apps import LONG, Apps, everything_stored, settled, waiting_again
from windlass import Backoff, Event, JobFailedError, JobStatus, Windlass
from windlass.testing import Drained, advance, drain, isolated


class Policy:
    """A retry policy that keeps what it was asked."""

    def __init__(self, *, retries: bool = True, delay: float = 0) -> None:
        self.asked: list[tuple[int, str]] = []
        self._retries = retries
        self._delay = delay

    def should_retry(self, attempt: int, error: BaseException) -> bool:
        self.asked.append((attempt, type(error).__name__))
        return self._retries

    def get_delay(self, attempt: int) -> timedelta:
        return timedelta(seconds=self._delay)


FORBIDDEN = ["marked", "marked base", "do not retry", "cause", "group", "marked in a group", "wrapped mark"]


def test_an_error_that_forbids_retries_fails_the_job_without_calling_the_policy(
    apps: Apps, caplog: pytest.LogCaptureFixture
):
    """J5.1, P4.1: marked classes and DoNotRetry, in the chain or a group, come first; the reason is logged."""
    policy = Policy()
    app = apps(retry_policy=policy)
    fail = app.job(max_retries=5)(jobs.raise_it)
    with app.worker():
        found = [settled(app, fail.enqueue(what).id) for what in FORBIDDEN]
    assert [(job.status, job.reason, job.attempts) for job in found] == [(JobStatus.FAILED, "non_retryable", 1)] * 7
    assert policy.asked == []
    assert "(a declined card stays declined)" in caplog.text


def test_a_suppressed_context_does_not_forbid_a_retry(app: Windlass):
    """J5.1: `raise … from None` hides the handled exception, and the job is retried."""
    fail = app.job(max_retries=1)(jobs.raise_it)
    with app.worker():
        job = settled(app, fail.enqueue("cut mark").id)
    assert (job.reason, job.attempts, job.error) == ("retry_exhausted", 2, "ValueError: try later")


def test_the_policy_is_called_next_and_its_refusal_is_final(apps: Apps):
    """J5.1: `RetryPolicy.should_retry(attempt, exc)` False is a dead letter, whatever max_retries says."""
    policy = Policy(retries=False)
    app = apps(retry_policy=policy)
    fail = app.job(max_retries=5)(jobs.raise_it)
    with app.worker():
        job = settled(app, fail.enqueue("plain").id)
    assert (job.status, job.reason, job.attempts) == (JobStatus.FAILED, "non_retryable", 1)
    assert policy.asked == [(1, "ValueError")]


@pytest.mark.parametrize("retries", [0, 1, 3])
def test_max_retries_bounds_the_attempts(apps: Apps, retries: int):
    """J5.1: attempt <= max_retries, else dead letter; the policy sees every attempt, from 1."""
    policy = Policy()
    app = apps(retry_policy=policy)
    fail = app.job(max_retries=retries)(jobs.raise_it)
    with app.worker():
        job = settled(app, fail.enqueue("plain").id)
    assert (job.status, job.reason, job.attempts) == (JobStatus.FAILED, "retry_exhausted", retries + 1)
    assert policy.asked == [(attempt, "ValueError") for attempt in range(1, retries + 2)]


def test_jobs_are_not_retried_by_default(app: Windlass):
    """J5.1: max_retries is 0 by default."""
    fail = app.job(jobs.afail)
    with app.worker():
        assert settled(app, fail.enqueue("x").id).attempts == 1


def delay_after_first_failure(app: Windlass, job: Any, *args: Any) -> float:
    """By how much the due time lies behind the end of the first attempt."""
    with app.worker():
        waiting = waiting_again(app, job.enqueue(*args).id, attempts=1)
    assert waiting.due_at is not None
    (attempt,) = app.history(waiting.id)
    return float((waiting.due_at - attempt.ended_at).total_seconds())


def test_an_errors_own_delay_comes_first(apps: Apps):
    """J5.2: RetryAfter beats the policy's delay and the backoff, and spends an attempt."""
    app = apps(retry_policy=Policy(delay=500))
    fail = app.job(max_retries=1, backoff=Backoff.fixed(900))(jobs.raise_it)
    assert 40 <= delay_after_first_failure(app, fail, "retry after") < 60


def test_the_policys_delay_comes_next(apps: Apps):
    """J5.2: a non-zero `get_delay` beats the job's backoff, as given."""
    app = apps(retry_policy=Policy(delay=500))
    fail = app.job(max_retries=1, backoff=Backoff.fixed(900))(jobs.raise_it)
    assert 500 <= delay_after_first_failure(app, fail, "plain") < 520


@pytest.mark.parametrize(
    ("backoff", "least"),
    [(Backoff.fixed(900), 900), (Backoff.exponential(100), 100), (Backoff.exponential(100, jitter=0.5), 50)],
)
def test_the_jobs_backoff_decides_last(app: Windlass, backoff: Backoff, least: float):
    """J5.2: visible as the due time of the waiting job."""
    fail = app.job(max_retries=1, backoff=backoff)(jobs.raise_it)
    assert least <= delay_after_first_failure(app, fail, "plain") < 950


def test_exponential_backoff_doubles_from_attempt_to_attempt(app: Windlass):
    """J5.2: base * 2 ** (attempt - 1)."""
    fail = app.job(max_retries=3, backoff=Backoff.exponential(100))(jobs.raise_it)
    with isolated(app, url=app.url):
        fail.enqueue("plain")
        for wait in (100, 200, 400):
            assert drain(app) == Drained(retried=1)
            advance(wait - 1)
            assert not drain(app)
            advance(1)
        assert drain(app) == Drained(failed=1)


def test_a_retry_after_without_retries_left_is_a_dead_letter(app: Windlass):
    """J5.2: it passes the same checks as any failure."""
    fail = app.job(jobs.raise_it)
    with app.worker():
        job = settled(app, fail.enqueue("retry after").id)
    assert (job.status, job.reason, job.error) == (JobStatus.FAILED, "retry_exhausted", "RetryAfter: busy")


@pytest.mark.parametrize(
    ("answer", "trouble"),
    [
        (RuntimeError("token=hunter2"), "raised RuntimeError"),
        (None, "answered with NoneType"),
        ("soon", "answered with str"),
        (-1, "answered with int"),
    ],
    ids=["raises", "None", "text", "negative"],
)
def test_a_broken_policy_decides_nothing_and_is_logged(
    apps: Apps, answer: object, trouble: str, caplog: pytest.LogCaptureFixture
):
    """J5.1, J5.2: users' code that raises or answers with rubbish is passed over, and the log says so."""

    class Broken:
        def should_retry(self, attempt: int, error: BaseException) -> bool:
            return self.get_delay(attempt)  # type: ignore[return-value]

        def get_delay(self, attempt: int) -> timedelta:
            if isinstance(answer, Exception):
                raise answer
            return answer  # type: ignore[return-value]

    app = apps(retry_policy=Broken())
    job = app.job(max_retries=1)(jobs.fail_at_first)
    with app.worker():
        assert job.enqueue("x").result(timeout=LONG) == 2
    assert f"(RetryPolicy.should_retry {trouble}" in caplog.text
    assert "hunter2" not in caplog.text


def test_the_seeds_error_is_stored_as_printed_there(app: Windlass, apps: Apps, caplog: pytest.LogCaptureFixture):
    """J5.3: `ClassName: message`, credentials gone, the rest kept; nowhere is the secret found."""
    events: list[Event] = []
    app.on(Event)(events.append)
    fail = app.job(max_retries=1)(jobs.raise_it)
    with app.worker():
        jdbc, secrets = (settled(app, fail.enqueue(what).id) for what in ("jdbc", "secrets"))
    assert jdbc.error == "RuntimeException: Connection failed: jdbc:mysql://[REDACTED]@db.internal:3306/prod"
    assert jdbc.error_class == "RuntimeException"
    assert secrets.error is not None
    places = {"tables": everything_stored(apps.url), "log": caplog.text, "events": repr(events)}
    for place, text in places.items():
        assert "RuntimeException" in text, place
        for secret in ("s3cret", jobs.SECRET, "ops@shop.example"):
            assert secret not in text, (place, secret)


def test_the_error_of_a_failed_result_contains_no_secrets(app: Windlass):
    """J5.3: the error a caller gets is the sanitised one."""
    fail = app.job(jobs.araise_it)
    with app.worker():
        handle = fail.enqueue("secrets")
        with pytest.raises(JobFailedError) as caught:
            handle.result(timeout=LONG)
    assert jobs.SECRET not in repr(caught.value) + str(caught.value)
    assert caught.value.error_class == "RuntimeException"


def test_errors_without_message_and_errors_without_end_are_kept(app: Windlass):
    """J5.3: the class name always, at most 2,000 characters, even if the error cannot say what it is."""
    fail = app.job(jobs.raise_it)
    with app.worker():
        empty, broken, long = (settled(app, fail.enqueue(what).id) for what in ("no message", "broken text", "long"))
    assert (empty.error, empty.error_class) == ("ValueError", "ValueError")
    assert (broken.error, broken.error_class) == (
        "BrokenError: <no message: its __str__ raised RuntimeError>",
        "BrokenError",
    )
    assert long.error is not None
    assert len(long.error) == 2000


class Terse:
    """A sanitizer of the user's own, which itself fails at times."""

    def sanitize(self, error: BaseException) -> str:
        if "broken" in str(error):
            raise RuntimeError("sanitizer")
        return f"{type(error).__name__} somewhere"


def test_the_sanitizer_is_replaceable_and_its_failure_lets_no_secret_through(apps: Apps):
    """J5.3: `error_sanitizer=`; if it raises, the default one answers."""
    app = apps(error_sanitizer=Terse())
    fail = app.job(jobs.fail)
    with app.worker():
        own = settled(app, fail.enqueue("password=hunter2").id)
        fallback = settled(app, fail.enqueue("broken password=hunter2").id)
    assert own.error == "ValueError somewhere"
    assert fallback.error == "ValueError: broken password=[REDACTED]"
    assert "hunter2" not in repr(app.history(own.id))


class Unreachable(logging.Handler):
    """A handler whose service is down."""

    def emit(self, record: logging.LogRecord) -> None:
        raise ConnectionError(record.name)


@pytest.fixture
def no_log_gets_through() -> Iterator[None]:
    handler = Unreachable()
    logging.getLogger("windlass").addHandler(handler)
    yield
    logging.getLogger("windlass").removeHandler(handler)


@pytest.mark.usefixtures("no_log_gets_through")
def test_a_logging_handler_that_raises_loses_no_outcome_and_no_timeout(app: Windlass, capsys: pytest.CaptureFixture):
    """J5.1, J4.5: failures are written and timeouts end bodies, whatever becomes of the log."""
    failed = app.job(jobs.fail).enqueue("broken")
    with app.worker(concurrency=1):
        assert failed.join(timeout=LONG) is JobStatus.FAILED
        late = app.job(timeout=0.05)(jobs.sleep_long).enqueue()
        assert late.join(timeout=LONG) is JobStatus.FAILED
        assert app.job(jobs.add).enqueue(1, 2).result(timeout=LONG) == 3
    assert "a logging handler raised ConnectionError" in capsys.readouterr().err
