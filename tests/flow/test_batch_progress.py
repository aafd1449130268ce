"""The progress of batches: read at any time, published after commits, at most once a second."""

from collections.abc import Iterator

import pytest

from tests.engine.apps import Apps
from tests.flow import batch_bodies
from tests.flow.batch_bodies import SHOWN, refuse, show, show_later
from tests.flow.flow_bodies import BROKEN, Jobs, run_one
from windlass import Batch, BatchCompleted, BatchProgressed, Event, JobStatus, Windlass
from windlass.domain.clock import VirtualClock
from windlass.errors import JobNotFoundError, SerializationError, TargetNotAllowedError
from windlass.testing import drain

ITEMS = 8


@pytest.fixture(autouse=True)
def _nothing_shown() -> Iterator[None]:
    yield
    SHOWN.clear()


@pytest.fixture
def batch(app: Windlass, jobs: Jobs) -> Batch:
    app.job(batch_bodies.child)  # its module declares a job: the functions there may be called
    return app.batch("letters").each(jobs.step, [str(number) for number in range(ITEMS)])


def run_slowly(app: Windlass, clock: VirtualClock, seconds: float) -> None:
    """Run one child after the other; each takes so long."""
    for _ in range(ITEMS):
        clock.advance(seconds)
        run_one(app)
    app._bus.flush()


def test_progress_is_shown_at_most_once_a_second(app: Windlass, batch: Batch, clock: VirtualClock):
    """J8.4: after commits, for the whole cluster, and always at the end."""
    batch.on_progress(show).enqueue()
    run_slowly(app, clock, 0.4)
    assert [one.completed for one in SHOWN] == [3, 6, ITEMS]
    assert [one.complete for one in SHOWN] == [False, False, True]


def test_progress_is_shown_at_the_end_of_a_fast_batch(app: Windlass, batch: Batch):
    """J8.4: once; a coroutine function is awaited."""
    batch.on_progress(show_later).enqueue()
    drain(app)
    app._bus.flush()
    assert [(one.completed, one.percent) for one in SHOWN] == [(ITEMS, 100.0)]


def test_events_carry_the_progress(app: Windlass, batch: Batch, clock: VirtualClock):
    """J5.8: BatchProgressed as for on_progress, BatchCompleted once per end, behind the last one."""
    events: list[Event] = []
    app.on(BatchProgressed)(events.append)
    app.on(BatchCompleted)(events.append)
    BROKEN.add("3")
    handle = batch.enqueue()
    run_slowly(app, clock, 0.6)
    assert [type(event).__name__ for event in events] == [*["BatchProgressed"] * 4, "BatchCompleted"]
    assert all(isinstance(event, BatchProgressed | BatchCompleted) for event in events)
    assert {event.batch_id for event in events} == {event.job_id for event in events} == {handle.id}  # type: ignore[attr-defined]
    assert {(event.target, event.queue) for event in events} == {("windlass:batch", "default")}
    assert events[-1].progress == events[-2].progress == handle.progress()  # type: ignore[attr-defined]
    assert SHOWN == []


def test_function_that_raises_is_logged_and_stops_nothing(
    app: Windlass, batch: Batch, caplog: pytest.LogCaptureFixture
):
    """J8.4, J5.8: like a subscriber."""
    handle = batch.on_progress(refuse).enqueue()
    drain(app)
    app._bus.flush()
    assert (handle.status(), len(SHOWN)) == (JobStatus.SUCCEEDED, 1)
    assert "cannot show it" in caplog.text


def test_function_must_be_admitted(app: Windlass, jobs: Jobs, apps: Apps):
    """J8.2: by a job of its own module, or by allow; and have a name. Nothing is stored otherwise."""
    batch = app.batch("letters").each(jobs.step, ["a"])
    with pytest.raises(TargetNotAllowedError, match="declares no job of this application"):
        batch.on_progress(show).enqueue()
    with pytest.raises(SerializationError):
        batch.on_progress(lambda progress: None).enqueue()
    assert list(app.find()) == []
    other = apps(allow=["tests.flow.batch_bodies"])
    other.batch("numbers").each(batch_bodies.child, [1]).on_progress(show).enqueue()
    drain(other)
    other._bus.flush()
    assert len(SHOWN) == 1


def test_function_is_checked_again_before_it_is_called(app: Windlass, batch: Batch, apps: Apps, jobs: Jobs):
    """J8.2: a process that does not admit it does not call it, and says so."""
    del jobs
    batch.on_progress(show).enqueue()
    other = apps(clock=app.parts.clock)
    Jobs(other)
    drain(other)
    other._bus.flush()
    assert SHOWN == []


def test_progress_of_an_unknown_batch(app: Windlass, jobs: Jobs):
    """J8.4: neither a plain job nor an unknown id has one."""
    handle = jobs.step.enqueue("a")
    for unknown in (handle.id, "01a1ec5d-99f8-7037-8def-021829edc935"):
        with pytest.raises(JobNotFoundError):
            app.batch_handle(unknown).progress()
