"""Whole batches: cancel, pause, resume and retry reach every child, a part at a time."""

import threading
from collections.abc import Iterator

import pytest

from tests.engine.apps import LONG, Apps, Gate, query, until
from tests.flow.batch_bodies import Items, child_states, children
from tests.flow.flow_bodies import BROKEN, RAN, Jobs, id_of, run_one, states
from windlass import BatchCompleted, DuplicateBusinessKeyError, JobContext, JobStatus, Windlass
from windlass.errors import JobStateError
from windlass.stores.plans import operations
from windlass.testing import drain

S = JobStatus
OPERATIONS = "SELECT count(*) FROM windlass_operation"


@pytest.fixture(params=[2, operations.WINDOW], ids=["in parts", "at once"])
def _window(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "WINDOW", request.param)


@pytest.mark.usefixtures("_window")
def test_cancel_of_a_batch_cancels_its_children_and_followers(app: Windlass, apps: Apps, jobs: Jobs):
    """J8.4, J2.2: also by app.cancel; what has ended stays, and it counts as failed."""
    made = app.batch("letters").each(jobs.step, list("abcde")).then_on_batch_success(jobs.step.bind("success"))
    handle = made.then_on_batch_failure(jobs.step.bind("failure")).when_failure_count(1, jobs.step.bind("x")).enqueue()
    run_one(app)
    assert handle.cancel()
    assert child_states(app, handle) == {"SUCCEEDED": 1, "CANCELED": 4}
    assert (handle.status(), app.get(handle.id).reason) == (S.CANCELED, "canceled")
    progress = handle.progress()
    assert (progress.completed, progress.failed, progress.complete) == (1, 4, True)
    followers = {name: state for name, state in states(app).items() if len(name) > 1 or name == "x"}
    assert set(followers.values()) == {"CANCELED upstream_canceled"}
    assert not handle.cancel()
    assert handle.retry_failed() == 0
    assert drain(app).total == 0
    assert query(apps.url, OPERATIONS) == [(0,)]


def test_cancel_stops_its_loader(app: Windlass, jobs: Jobs):
    """J8.4: nothing is added to a batch that was canceled."""

    def items() -> Iterator[str]:
        yield "a"
        yield "b"
        (opened,) = app.find(target="windlass:batch")
        assert app.cancel(opened.id)
        yield "c"

    with pytest.raises(
        JobStateError, match="the batch is CANCELED, so nothing can be added to it; items from number 2"
    ):
        app.batch("letters").each(jobs.step, items(), chunk_size=2).enqueue()
    assert states(app) == {"a": "CANCELED canceled", "b": "CANCELED canceled"}


@pytest.mark.usefixtures("_window")
def test_pause_holds_waiting_children_and_resume_lets_them_go(app: Windlass, jobs: Jobs):
    """J8.4, J2.3: idempotent; followers are held with it."""
    made = app.batch("letters").each(jobs.step, list("abcde")).then_on_batch_success(jobs.step.bind("after"))
    handle = made.enqueue()
    run_one(app)
    assert handle.pause()
    assert handle.pause()
    assert (handle.status(), child_states(app, handle)) == (S.PAUSED, {"SUCCEEDED": 1, "PAUSED": 4})
    assert drain(app).total == 0
    assert handle.resume()
    assert not handle.resume()
    assert (handle.status(), child_states(app, handle)) == (S.PENDING, {"SUCCEEDED": 1, "PENDING": 4})
    drain(app)
    assert (handle.status(), RAN[-1]) == (S.SUCCEEDED, "after")


def test_children_stored_while_a_batch_is_paused_are_paused(app: Windlass, jobs: Jobs):
    """J8.4: chunks loaded meanwhile go in PAUSED."""

    def items() -> Iterator[str]:
        yield "a"
        yield "b"
        (opened,) = app.find(target="windlass:batch")
        assert app.pause(opened.id)
        yield "c"

    handle = app.batch("letters").each(jobs.step, items(), chunk_size=2).enqueue()
    assert (handle.status(), child_states(app, handle)) == (S.PAUSED, {"PAUSED": 3})
    assert handle.resume()
    drain(app)
    assert handle.status() is S.SUCCEEDED


def test_paused_batch_ends_with_its_last_child(app: Windlass, jobs: Jobs):
    """J8.4: what runs goes on, with its retries; then nothing is left to be held."""
    handle = app.batch("letters").each(jobs.step, ["a"]).then_on_batch_success(jobs.step.bind("b")).enqueue()
    assert handle.pause()
    assert app.resume(id_of(app, "a"))
    drain(app)
    assert (handle.status(), RAN) == (S.SUCCEEDED, ["a", "b"])
    assert not handle.pause()


@pytest.mark.usefixtures("_window")
def test_retry_failed_starts_failed_children_over(app: Windlass, jobs: Jobs):
    """J8.4, J2.4: the batch ends anew; what was released stays, what was canceled is decided again."""
    BROKEN.update("bcd")
    made = app.batch("letters").each(jobs.step, list("abcde")).then_on_batch_success(jobs.step.bind("success"))
    made = made.then_on_batch_failure(jobs.step.bind("failure")).when_success_rate(0.8, jobs.step.bind("rate"))
    ends: list[object] = []
    app.on(BatchCompleted)(lambda event: ends.append((event.progress.completed, event.progress.failed)))
    handle = made.enqueue()
    drain(app)
    assert states(app)["rate"] == "CANCELED not_chosen"
    BROKEN.remove("b")
    assert handle.retry_failed() == 3
    assert (handle.status(), handle.progress().failed, handle.progress().complete) == (S.PENDING, 0, False)
    assert states(app)["success"] == states(app)["rate"] == "PENDING"
    drain(app)
    assert (handle.status(), handle.progress().failed, RAN.count("failure")) == (S.FAILED, 2, 1)
    BROKEN.clear()
    assert app.retry(handle.id)
    drain(app)
    assert (handle.status(), handle.progress().failed) == (S.SUCCEEDED, 0)
    assert [RAN.count(name) for name in ("success", "failure", "rate")] == [1, 1, 1]
    assert handle.retry_failed() == 0
    app._bus.flush()
    assert ends == [(2, 3), (3, 2), (5, 0)]


def test_retry_of_one_child_reopens_its_batch(app: Windlass, jobs: Jobs):
    """J2.4: its counters, and what the failure canceled."""
    BROKEN.update("ab")
    handle = (
        app.batch("letters").each(jobs.step, list("abc")).then_on_batch_success(jobs.step.bind("success")).enqueue()
    )
    drain(app)
    BROKEN.clear()
    assert app.retry(id_of(app, "a"))
    assert (handle.status(), handle.progress().failed, states(app)["success"]) == (S.PENDING, 1, "PENDING")
    drain(app)
    assert (handle.status(), states(app)["success"]) == (S.FAILED, "CANCELED upstream_failed")
    assert app.retry(id_of(app, "b"))
    drain(app)
    assert (handle.status(), states(app)["success"]) == (S.SUCCEEDED, "SUCCEEDED")


def test_canceled_children_stay_canceled_by_a_retry(app: Windlass, jobs: Jobs):
    """J2.4: only FAILED children are started over."""
    BROKEN.add("a")
    handle = app.batch("letters").each(jobs.step, list("ab")).enqueue()
    app.cancel(id_of(app, "b"))
    drain(app)
    BROKEN.clear()
    assert handle.retry_failed() == 1
    drain(app)
    assert (handle.status(), child_states(app, handle)) == (S.FAILED, {"SUCCEEDED": 1, "CANCELED": 1})


def test_retry_takes_the_business_key_of_the_batch_again(app: Windlass, jobs: Jobs):
    """J1.5: and is refused while another job holds it; nothing changes then."""
    BROKEN.add("a")
    handle = app.batch("letters", business_key="k").each(jobs.step, ["a"]).enqueue()
    drain(app)
    other = app.batch("letters", business_key="k").each(jobs.step, ["b"]).enqueue()
    with pytest.raises(DuplicateBusinessKeyError):
        handle.retry_failed()
    assert handle.status() is S.FAILED
    assert other.cancel()
    assert handle.retry_failed() == 1


def test_open_batch_cannot_be_retried(app: Windlass, jobs: Jobs):
    """J8.4: its loader goes on first."""
    BROKEN.add("item 0")
    with pytest.raises(OSError, match="broken"):
        app.batch("file").each(jobs.step, Items(4, raises_at=2), chunk_size=2).enqueue()
    drain(app)
    (opened,) = app.find(target="windlass:batch")
    assert app.batch_handle(opened.id).retry_failed() == 0
    assert len(children(app, app.batch_handle(opened.id))) == 2


def test_running_children_are_stopped_by_a_cancel(app: Windlass, gate: Gate, jobs: Jobs):
    """J8.4, J2.2: wherever they run."""
    stopped = threading.Event()

    del jobs
    job = app.job(name="holds")(lambda number: _hold(gate, stopped, number))
    handle = app.batch("held").each(job, [1]).enqueue()
    with app.worker():
        gate.wait_entered()
        assert handle.cancel()
        until(stopped.is_set, LONG)
    assert (handle.status(), child_states(app, handle)) == (S.CANCELED, {"CANCELED": 1})


def _hold(gate: Gate, stopped: threading.Event, number: int) -> int:
    gate.entered.set()
    context = JobContext.current()
    while not context.cancelled:
        gate.opened.wait(0.01)
    stopped.set()
    return number
