"""A resilience strategy of the user's own: asked, called through, and never able to lose or spend a job."""

import logging
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any

import pytest

from tests.engine import gated_jobs, jobs
from tests.engine.apps import LONG, ONLY_WAKEUPS, Apps, settled, until
from windlass import CircuitOpenError, JobHandle, JobStatus, Windlass

ALLOWED = ["tests.engine.gated_jobs", "tests.engine.jobs"]
Body = Callable[[], Coroutine[Any, Any, Any]]


class Strategy:
    """Does as the test says, and writes down what it was asked."""

    def __init__(self) -> None:
        self.up = True
        self.delay: Any = timedelta(seconds=0.2)
        self.asked: list[str] = []
        self.ended: list[str] = []

    def available(self, service: str) -> bool:
        self.asked.append(service)
        return self.up

    def retry_delay(self, service: str) -> timedelta:
        if isinstance(self.delay, Exception):
            raise self.delay
        delay: timedelta = self.delay
        return delay

    async def execute(self, service: str, call: Body) -> Any:
        try:
            value = await call()
        except BaseException as error:
            self.ended.append(f"{service}: {type(error).__name__}")
            raise
        self.ended.append(f"{service}: fine")
        return value


class Bulkhead(Strategy):
    """Refuses calls itself."""

    async def execute(self, service: str, call: Body) -> Any:
        self.ended.append("refused")
        if len(self.ended) < 3:
            raise CircuitOpenError(service)
        return await call()


class Careless(Strategy):
    """Never makes the call."""

    async def execute(self, service: str, call: Body) -> Any:
        return None


class Faulty(Strategy):
    """Fails after the call was made."""

    async def execute(self, service: str, call: Body) -> Any:
        await call()
        raise OSError("the breaker's own store is down")


class Swallowing(Strategy):
    """Keeps errors to itself."""

    async def execute(self, service: str, call: Body) -> Any:
        try:
            return await call()
        except Exception:  # noqa: BLE001 - the point
            return "as if nothing had happened"


class Opening(Strategy):
    """Opens after the body ran."""

    async def execute(self, service: str, call: Body) -> Any:
        await call()
        raise CircuitOpenError(service)


class Broken(Strategy):
    """Cannot say whether the service is there."""

    def available(self, service: str) -> bool:
        self.asked.append(service)
        raise RuntimeError("no idea")


def made(apps: Apps, strategy: Any) -> Windlass:
    return apps(settings=ONLY_WAKEUPS, allow=ALLOWED, resilience=strategy)


def call(app: Windlass, function: Any = jobs.anote, *args: Any, **options: Any) -> JobHandle[Any]:
    handle: JobHandle[Any] = app.bind(function, *(args or ("x",))).using(circuit="gateway", **options).enqueue()
    return handle


def outcomes(app: Windlass, handle: JobHandle[Any]) -> list[str]:
    return [attempt.outcome for attempt in app.history(handle.id)]


def test_jobs_with_a_circuit_are_called_through_it_and_others_are_not(apps: Apps):
    """J4 step 9: with threads and coroutines; it sees how each call ended."""
    strategy = Strategy()
    app = made(apps, strategy)
    with app.worker():
        assert call(app, jobs.anote, "a").result(timeout=LONG) == "a"
        assert call(app, jobs.note, "b").result(timeout=LONG) == "b"
        failed = settled(app, call(app, jobs.fail, "no").id)
        assert app.bind(jobs.anote, "plain").enqueue().result(timeout=LONG) == "plain"
    assert (failed.status, failed.error) == (JobStatus.FAILED, "ValueError: no")
    assert strategy.asked == ["gateway"] * 3
    assert strategy.ended == ["gateway: fine", "gateway: fine", "gateway: ValueError"]
    assert app.circuits() == [], "the store's own circuits learn nothing beside it"


def test_a_service_that_is_not_available_defers_without_an_attempt(apps: Apps):
    """J6.1, J4 step 5: due again after the strategy's delay, as often as it takes."""
    strategy = Strategy()
    strategy.up = False
    app = made(apps, strategy)
    with app.worker():
        handle = call(app, max_retries=0)
        until(lambda: len(app.history(handle.id)) >= 2)
        strategy.up = True
        assert handle.result(timeout=LONG) == "x"
    assert set(outcomes(app, handle)[:-1]) == {"deferred"}
    assert outcomes(app, handle)[-1] == "succeeded"
    assert app.get(handle.id).attempts == 1
    assert jobs.seen == ["x"]


@pytest.mark.parametrize(
    "delay",
    [timedelta(0), timedelta(days=-5), timedelta.max, 7, RuntimeError("no idea")],
    ids=["none", "negative", "for ever", "no timedelta", "raises"],
)
def test_an_invalid_delay_neither_spins_nor_loses_the_job(apps: Apps, delay: Any):
    """J6.1: without a pause it would go round as quickly as the store can; past all time it would never come back."""
    strategy = Strategy()
    strategy.up, strategy.delay = False, delay
    app = made(apps, strategy)
    with app.worker():
        handle = call(app)
        until(lambda: app.history(handle.id))
        job = app.get(handle.id)
        assert job.due_at is not None
        first = app.history(handle.id)[0]
        waits = (job.due_at - first.ended_at).total_seconds()
        assert 0.05 < waits < 100_000
        other = app.bind(jobs.anote, "other").enqueue()
        assert other.result(timeout=LONG) == "other"
        assert len(app.history(handle.id)) < 50


def test_a_strategy_that_refuses_the_call_defers_it(apps: Apps):
    """J6.1: `CircuitOpenError` before the body was entered: no attempt is spent."""
    app = made(apps, Bulkhead())
    with app.worker():
        handle = call(app)
        assert handle.result(timeout=LONG) == "x"
    assert outcomes(app, handle) == ["deferred", "deferred", "succeeded"]
    assert app.get(handle.id).attempts == 1


def test_a_strategy_that_never_makes_the_call_fails_the_job(apps: Apps):
    """J4 step 9: nothing that did not run is taken for a success."""
    app = made(apps, Careless())
    with app.worker():
        job = settled(app, call(app).id)
    assert (job.status, job.error_class) == (JobStatus.FAILED, "RuntimeError")
    assert job.error == "RuntimeError: the resilience strategy never made the call to gateway"
    assert jobs.seen == []


@pytest.mark.parametrize(
    ("strategy", "error_class"), [(Faulty, "OSError"), (Opening, "CircuitOpenError")], ids=["faulty", "opening"]
)
def test_a_strategy_that_fails_after_the_body_fails_the_job(apps: Apps, strategy: type[Strategy], error_class: str):
    """J4 step 9: the body has run, so its attempt is spent and its retries decide."""
    app = made(apps, strategy())
    with app.worker():
        job = settled(app, call(app, max_retries=1).id)
    assert (job.status, job.error_class, job.attempts) == (JobStatus.FAILED, error_class, 2)
    assert jobs.seen == ["x", "x"]


def test_a_failed_body_stays_failed_whatever_the_strategy_returns(apps: Apps):
    """J4 step 10: the outcome is the body's."""
    app = made(apps, Swallowing())
    with app.worker():
        job = settled(app, call(app, jobs.fail, "no").id)
    assert (job.status, job.error) == (JobStatus.FAILED, "ValueError: no")


def test_a_strategy_that_raises_keeps_the_job_waiting(apps: Apps, caplog: pytest.LogCaptureFixture):
    """J6.1: neither run nor failed nor spent; the log says why."""
    app = made(apps, Broken())
    with app.worker():
        handle = call(app)
        until(lambda: outcomes(app, handle) == ["deferred"])
        assert app.explain(handle.id).code == "not_due"
    job = app.get(handle.id)
    assert (job.status, job.attempts) == (JobStatus.PENDING, 0)
    assert [record.levelno for record in caplog.records if "available('gateway')" in record.getMessage()] == [
        logging.ERROR
    ]


def test_a_snooze_and_a_timeout_pass_through_a_strategy(apps: Apps):
    """J4.4, J4.5: what the engine does with a body, it does with one behind a strategy."""
    app = made(apps, Strategy())
    with app.worker():
        snoozed = call(app, jobs.asnooze_once, 0.05)
        slow = app.bind(jobs.sleep_long).using(circuit="gateway", timeout=0.2).enqueue()
        assert snoozed.result(timeout=LONG) == 1
        assert settled(app, slow.id).error_class == "JobTimeoutError"
    assert outcomes(app, snoozed) == ["snoozed", "succeeded"]


def test_a_running_job_behind_a_strategy_is_canceled(apps: Apps):
    """J2.2: the cancellation reaches the body through it."""
    app = made(apps, Strategy())
    with app.worker():
        handle = app.bind(jobs.clean_up_when_cancelled).using(circuit="gateway").enqueue()
        until(lambda: handle.status() is JobStatus.RUNNING and app.nodes())
        assert handle.cancel()
        assert handle.join(timeout=LONG) is JobStatus.CANCELED


def test_process_jobs_go_through_a_strategy_too(apps: Apps):
    """J4.2: whatever the executor."""
    strategy = Strategy()
    app = made(apps, strategy)
    with app.worker():
        handle = call(app, gated_jobs.marked, 7, executor="process")
        assert handle.result(timeout=LONG * 2) == 7
    assert strategy.ended == ["gateway: fine"]
