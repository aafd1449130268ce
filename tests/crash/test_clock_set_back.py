"""The clock is set back by an hour while work is going on."""

from datetime import datetime, timedelta

import pytest

from tests.crash.programs import bodies
from tests.crash.programs.application import make_app
from tests.support.facts import outcomes, statuses
from tests.support.programs import Programs
from tests.support.waiting import until
from windlass import Backoff, JobStatus, NodeSettings, Settings, Windlass
from windlass.domain.clock import SystemClock

HOUR = timedelta(hours=1)
BUSY_HEART = Settings(node=NodeSettings(heartbeat_interval=0.2, missed_heartbeats=10, recovery_interval=0.1))


class SettableClock:
    """The machine's clock, wrong by as much as it was set wrong."""

    def __init__(self) -> None:
        self.error = timedelta()

    def now(self) -> datetime:
        return SystemClock().now() + self.error


@pytest.fixture
def clock() -> SettableClock:
    return SettableClock()


@pytest.fixture
def app(store_url: str, clock: SettableClock, programs: Programs):
    del programs  # its environment is where bodies write
    application = make_app(store_url, clock=clock, settings=BUSY_HEART)
    application.migrate()
    yield application
    application.close()


def fail_once() -> int:
    number = bodies.attempt_number()
    if number == 1:
        raise ConnectionError("try again")
    return number


def test_jobs_run_and_their_times_make_sense_although_the_clock_was_set_back(
    app: Windlass, store_url: str, clock: SettableClock, programs: Programs, caplog: pytest.LogCaptureFixture
):
    """J2.5, J7.2: what runs ends, what comes runs, retries and delays are kept, no wait or run is negative."""
    app.job(fail_once)
    with app.worker(concurrency=10):
        held = [app.bind(bodies.hold, n).enqueue() for n in range(3)]
        until(lambda: len(programs.ran("began")) == 3, "the bodies to begin")
        clock.error = -HOUR
        programs.open_gate()
        assert [handle.result(90) for handle in held] == [0, 1, 2]
        later = [app.bind(bodies.note, n).enqueue() for n in range(10, 15)]
        delayed = app.bind(bodies.note, 15).using(delay=0.3).enqueue()
        retried = app.bind(fail_once).using(max_retries=1, backoff=Backoff.fixed(0.2)).enqueue()
        assert [handle.result(90) for handle in later] == list(range(10, 15))
        assert (delayed.result(90), retried.result(90)) == (15, 2)
    for handle in (*held, *later, delayed, retried):
        job = app.get(handle.id)
        assert (job.crash_count, job.status) == (0, JobStatus.SUCCEEDED)
        assert 0 <= (job.wait_ms or 0) < 60_000
        for attempt in app.history(handle.id):
            assert (attempt.wait_ms or 0) >= 0
            assert (attempt.run_ms or 0) >= 0
    assert outcomes(store_url) == {"succeeded": 10, "retried": 1}
    assert "lost" not in caplog.text


def test_jobs_that_waited_when_the_clock_was_set_back_are_not_lost(
    app: Windlass, store_url: str, clock: SettableClock, programs: Programs
):
    """J3.1: due is due by the store's clock; it runs when that clock is there, before it nothing touches it."""
    waiting = [app.bind(bodies.note, n).enqueue() for n in range(5)]
    clock.error = -HOUR
    with app.worker():
        assert app.bind(bodies.note, 100).enqueue().result(90) == 100
        assert [handle.status() for handle in waiting] == [JobStatus.PENDING] * 5
        clock.error = timedelta()
        app.bind(bodies.note, 101).enqueue()  # wakes the poller, which would look again within seconds
        assert [handle.result(90) for handle in waiting] == list(range(5))
    assert sorted(int(n) for n in programs.ran()) == [0, 1, 2, 3, 4, 100, 101]
    until(lambda: statuses(store_url) == {"SUCCEEDED": 7}, "all to be written")
