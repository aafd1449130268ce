"""Signals in tests: `drain` lets waits time out on the test's clock, and inline mode runs what a signal releases."""

from tests.testing import kit_shop
from windlass import JobContext, JobStatus, approved
from windlass.testing import advance, drain, inline, isolated


def outcome() -> str:
    signal = JobContext.current().signal
    return "" if signal is None else signal.outcome


def test_drain_lets_waits_time_out():
    """J8.5: when the clock says so, and not before."""
    with isolated(kit_shop.app) as app:
        handle = app.job(outcome).bind().await_signal("k", timeout=60).enqueue()
        advance(59)
        assert not drain(app)
        advance(1)
        assert drain(app).failed == 1
        assert app.get(handle.id).reason == "signal_timeout"


def test_drain_runs_what_a_signal_releases():
    with isolated(kit_shop.app) as app:
        handle = app.job(outcome).bind().await_signal("k").enqueue()
        assert not drain(app)
        assert app.signal("k", approved()) == 1
        assert drain(app).succeeded == 1
        assert handle.result() == "approved"


def test_signal_runs_the_job_inline():
    """A job has run when `signal` returns; one that waits has not when `enqueue` does."""
    with inline(kit_shop.app) as app:
        handle = app.job(outcome).bind().await_signal("k").enqueue()
        assert handle.status() is JobStatus.WAITING
        app.signal("k", approved())
        assert handle.result() == "approved"


def test_inline_wait_times_out_when_the_clock_moves():
    with inline(kit_shop.app) as app:
        handle = app.job(outcome).bind().await_signal("k", timeout=60).enqueue()
        advance(60)
        assert handle.status() is JobStatus.FAILED
