"""Jobs that wait for a signal: sending it, what the body sees of it, and what happens if it does not come."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from tests.engine.apps import Apps, until
from tests.flow.flow_bodies import BROKEN, Jobs, id_of, states
from windlass import (
    AlertRaised,
    Backoff,
    Event,
    InvalidOptionError,
    JobContext,
    JobDeadLettered,
    JobFailed,
    JobFailedError,
    JobRetrying,
    JobSignaled,
    JobStatus,
    PayloadTooLargeError,
    SerializationError,
    Windlass,
    approved,
    group,
    rejected,
)
from windlass.client.redrive_order import process_owner
from windlass.domain.clock import VirtualClock
from windlass.testing import drain

KEY = "order:7:approved"
DAY = 86_400


def seen() -> list[Any]:
    """The signal as a body sees it."""
    signal = JobContext.current().signal
    return [] if signal is None else [signal.key, signal.outcome, signal.payload, signal.reason, signal.by]


def crashes_once() -> str:
    signal = JobContext.current().signal
    assert signal is not None
    if "crashes_once" in BROKEN:
        raise ValueError(f"broken in spite of {signal.outcome}")
    return signal.outcome


SENT: list[tuple[Any, list[Any]]] = [
    (approved({"by": "ops"}), ["approved", {"by": "ops"}, None]),
    (approved(), ["approved", None, None]),
    (rejected("out of stock"), ["rejected", None, "out of stock"]),
    (rejected("later", [1, 2]), ["rejected", [1, 2], "later"]),
    ({"amount": 3}, ["signaled", {"amount": 3}, None]),
    (None, ["signaled", None, None]),
]
"""Signals, and what a body sees of them."""


def test_body_sees_the_signal(app: Windlass):
    """J8.5, J4.4: `ctx.signal`; a rejection releases too."""
    job = app.job(seen)
    handles = [job.bind().await_signal(f"order:{number}").enqueue() for number, _ in enumerate(SENT)]
    assert drain(app).total == 0
    assert {handle.status() for handle in handles} == {JobStatus.WAITING}
    assert [app.signal(f"order:{number}", value) for number, (value, _) in enumerate(SENT)] == [1] * len(SENT)
    drain(app)
    for number, (handle, (_, expected)) in enumerate(zip(handles, SENT, strict=True)):
        assert handle.result() == [f"order:{number}", *expected, process_owner()]


def test_job_without_a_wait_has_no_signal(app: Windlass):
    """J4.4: None."""
    handle = app.job(seen).enqueue()
    drain(app)
    assert handle.result() == []


def test_payload_keeps_its_types(app: Windlass):
    """J8.5: typed JSON, like an argument."""
    sent_at = datetime(2030, 1, 1, tzinfo=UTC)
    handle = app.job(seen).bind().await_signal(KEY).enqueue()
    app.signal(KEY, {"at": sent_at, "id": uuid4()})
    drain(app)
    assert handle.result()[2]["at"] == sent_at


def test_principal_is_the_sender(app: Windlass):
    """J8.5: `Signal.by`."""
    handle = app.job(seen).bind().await_signal(KEY).enqueue()
    with app.acting_as("ann"):
        app.signal(KEY)
    drain(app)
    assert handle.result()[-1] == "ann"


async def test_signal_by_an_async_caller(app: Windlass):
    """api.md: every verb has an async twin; ids are taken as UUID and as text."""
    call = app.job(seen).bind()
    first, second = [await call.await_signal(KEY).aenqueue() for _ in range(2)]
    assert await app.asignal(first.id) == 1
    assert await app.asignal(str(second.id).upper()) == 1
    assert await app.asignal(uuid4()) == 0


def test_signal_releases_every_waiter_once(app: Windlass):
    """J8.5: returns how many; nothing is kept for those that come later."""
    job = app.job(seen)
    handles = app.enqueue_many([job.bind().await_signal(KEY) for _ in range(5)])
    other = job.bind().await_signal("order:8").enqueue()
    assert (app.signal(KEY, 1), app.signal(KEY, 2)) == (5, 0)
    late = job.bind().await_signal(KEY).enqueue()
    drain(app)
    assert {handle.result()[2] for handle in handles} == {1}
    assert (other.status(), late.status()) == (JobStatus.WAITING, JobStatus.WAITING)


def test_signal_publishes_an_event_for_each_job(app: Windlass):
    """J5.8: JobSignaled with key, outcome and sender."""
    events: list[JobSignaled] = []
    app.on(JobSignaled)(events.append)
    handles = [app.job(seen).using(correlation_id="c").bind().await_signal(KEY).enqueue() for _ in range(2)]
    with app.acting_as("ann"):
        app.signal(KEY, rejected("no"))
    until(lambda: len(events) == len(handles))
    assert {event.job_id for event in events} == {handle.id for handle in handles}
    assert {(event.key, event.outcome, event.by, event.correlation_id) for event in events} == {
        (KEY, "rejected", "ann", "c")
    }


# ---------------------------------------------------------------------- timeouts


def test_timeout_is_a_failed_attempt(app: Windlass, clock: VirtualClock):
    """J8.5: SignalTimeoutError, reason signal_timeout; the body is not entered, `on_failure` follows."""
    events: list[Event] = []
    app.on(Event)(events.append)
    on_failure = app.job(_noted)
    handle = app.job(seen).using(on_failure=on_failure).bind().await_signal(KEY, timeout=DAY).enqueue()
    clock.advance(DAY)
    assert drain(app).failed == 1
    job = app.get(handle.id)
    assert (job.status, job.reason, job.error_class, job.attempts) == (
        "FAILED",
        "signal_timeout",
        "SignalTimeoutError",
        1,
    )
    assert [type(event) for event in events if event.job_id == handle.id] == [JobFailed, JobDeadLettered, AlertRaised]
    (attempt,) = app.history(handle.id)
    assert (attempt.outcome, attempt.started_at) == ("failed", None)
    (letter,) = app.dead_letters.find(reason="signal_timeout")
    assert letter.job_id == handle.id
    assert next(job for job in app.find(limit=10) if job.target.endswith("_noted")).result == "signal_timeout"
    with pytest.raises(JobFailedError, match="did not come within 86400 s"):
        handle.result()


def _noted(result: Any) -> str | None:
    return getattr(result, "reason", None)


def test_timeout_with_retries_left_waits_again(app: Windlass, clock: VirtualClock):
    """J8.5: at once, until backoff and timeout have passed; a signal during the backoff is not lost."""
    events: list[JobRetrying] = []
    app.on(JobRetrying)(events.append)
    job = app.job(seen).using(max_retries=2, backoff=Backoff.fixed(10))
    handle = job.bind().await_signal(KEY, timeout=timedelta(minutes=1)).enqueue()
    clock.advance(60)
    assert drain(app).retried == 1
    waits = app.get(handle.id)
    assert (waits.status, waits.attempts) == ("WAITING", 1)
    assert waits.due_at == clock.now() + timedelta(seconds=70)
    assert [event.next_at for event in events] == [waits.due_at]
    assert app.signal(KEY) == 1
    drain(app)
    assert handle.result()[1] == "signaled"


def test_give_up_on_applies_to_the_timeout(app: Windlass, clock: VirtualClock):
    """J8.5, J5.1: the same checks as for any failure."""
    job = app.job(seen).using(max_retries=5, give_up_on=(TimeoutError,))
    handle = job.bind().await_signal(KEY, timeout=1).enqueue()
    clock.advance(1)
    assert drain(app).failed == 1
    assert app.get(handle.id).reason == "signal_timeout"


def test_signal_stays_with_the_job_when_its_body_fails(app: Windlass):
    """J8.5: neither its retry nor a retry by hand waits again."""
    BROKEN.add("crashes_once")
    handle = app.job(crashes_once).using(max_retries=1).bind().await_signal(KEY).enqueue()
    app.signal(KEY, approved())
    assert drain(app).retried == 1
    BROKEN.clear()
    assert handle.retry()
    drain(app)
    assert handle.result() == "approved"


def test_retry_of_a_timed_out_job_waits_again(app: Windlass, clock: VirtualClock):
    """J8.5, J2.4: with its whole timeout."""
    handle = app.job(seen).bind().await_signal(KEY, timeout=60).enqueue()
    clock.advance(60)
    drain(app)
    assert handle.retry()
    assert (handle.status(), app.get(handle.id).due_at) == (JobStatus.WAITING, clock.now() + timedelta(seconds=60))
    assert app.signal(KEY) == 1


# ---------------------------------------------------------------------- flows


def test_follower_is_signaled_before_its_turn(app: Windlass, jobs: Jobs):
    """J8.5: it is PENDING then, and runs after its parent."""
    jobs.step.bind("a").then(jobs.step.bind("b").await_signal(KEY, timeout=60)).enqueue()
    assert states(app) == {"a": "PENDING", "b": "WAITING"}
    assert app.signal(KEY) == 1
    assert states(app)["b"] == "PENDING"
    drain(app)
    assert set(states(app).values()) == {"SUCCEEDED"}


def test_timeout_of_a_follower_begins_with_its_release(app: Windlass, jobs: Jobs, clock: VirtualClock):
    """J8.5: and its failure cancels what follows."""
    waits = jobs.step.bind("b").await_signal(KEY, timeout=60)
    jobs.step.using(delay=300).bind("a").then(waits).then(jobs.step.bind("c")).enqueue()
    clock.advance(300)
    drain(app)
    assert app.get(id_of(app, "b")).due_at == clock.now() + timedelta(seconds=60)
    clock.advance(60)
    drain(app)
    assert states(app) == {"a": "SUCCEEDED", "b": "FAILED", "c": "CANCELED upstream_failed"}


def test_members_of_a_group_wait(app: Windlass, jobs: Jobs):
    """J8.3, J8.5: one signal for all of them; the join then runs once."""
    members = [jobs.step.bind(name).await_signal(KEY) for name in "abc"]
    join = group(*members).then(jobs.join).enqueue()
    assert app.signal(KEY) == 3
    drain(app)
    assert join.result() == ["a", "b", "c"]


def test_retry_revives_a_waiting_follower(app: Windlass, jobs: Jobs):
    """J2.4, J8.5: it waits again; a signal that was sent while it was canceled is lost."""
    BROKEN.add("a")
    handle = jobs.step.bind("a").then(jobs.step.bind("b").await_signal(KEY)).enqueue()
    drain(app)
    assert app.signal(KEY) == 0
    BROKEN.clear()
    handle.retry()
    drain(app)
    assert states(app) == {"a": "SUCCEEDED", "b": "WAITING"}
    assert app.signal(KEY) == 1


# ---------------------------------------------------------------------- steering


def test_waiting_job_is_canceled_and_not_paused(app: Windlass):
    """J2.2, J2.3."""
    handle = app.job(seen).bind().await_signal(KEY).enqueue()
    assert (handle.pause(), handle.cancel(), handle.cancel()) == (False, True, False)
    assert (app.signal(KEY), handle.status()) == (0, JobStatus.CANCELED)


def test_replaced_waiter_gets_no_signal(app: Windlass):
    """J1.5: and its successor waits, if declared so."""
    job = app.job(seen).using(business_key="order:7", on_conflict="replace")
    first = job.bind().await_signal(KEY).enqueue()
    second = job.bind().await_signal(KEY).enqueue()
    assert app.signal(KEY) == 1
    assert (first.status(), second.status()) == (JobStatus.CANCELED, JobStatus.PENDING)


def test_explain_names_key_and_deadline(app: Windlass, clock: VirtualClock, jobs: Jobs):
    """J8.5: what it waits for, and until when."""
    job = app.job(seen)
    timed, endless = job.bind().await_signal(KEY, timeout=60).enqueue(), job.bind().await_signal(KEY).enqueue()
    found = app.explain(timed.id)
    assert (found.code, found.until) == ("waiting_for_signal", clock.now() + timedelta(seconds=60))
    assert repr(KEY) in found.message
    assert (app.explain(endless.id).until, app.get(endless.id).due_at) == (None, None)
    assert {one.id for one in app.find(status=JobStatus.WAITING)} == {timed.id, endless.id}
    flow = jobs.step.bind("a").then(jobs.step.bind("b").await_signal(KEY)).enqueue()
    first, second = flow.graph().nodes
    assert (first.signal_key, second.signal_key, timed.graph().nodes[0].signal_key) == (None, KEY, KEY)
    assert "follows another job" in app.explain(second.id).message


# ---------------------------------------------------------------------- refused


def test_wait_and_time_together_are_refused(app: Windlass):
    """J8.5: only one of them can decide when it runs."""
    job = app.job(seen)
    waiting = [job.using(delay=5).bind(), job.using(run_at=datetime(2031, 1, 1, tzinfo=UTC)).bind()]
    for call in (one.await_signal(KEY) for one in waiting):
        with pytest.raises(InvalidOptionError, match="delay or run_at"):
            call.enqueue()
        with pytest.raises(InvalidOptionError, match="delay or run_at"):
            job.bind().then(call).enqueue()
    assert app.find().items == []


def test_callback_that_waits_is_refused(app: Windlass):
    """J5.5: callbacks are jobs of their own, and store no wait."""
    job = app.job(seen)
    with pytest.raises(InvalidOptionError, match="awaits the signal"):
        job.using(on_success=job.bind().await_signal(KEY)).enqueue()


def test_invalid_signals_are_refused_before_anything_is_written(apps: Apps, clock: VirtualClock):
    """J8.5: payloads are checked like arguments, before anything is written."""
    app = apps(clock=clock)
    handle = app.job(seen).bind().await_signal(KEY).enqueue()
    with pytest.raises(SerializationError):
        app.signal(KEY, object())
    with pytest.raises(PayloadTooLargeError):
        app.signal(KEY, "x" * app.settings.jobs.max_payload_bytes)
    with pytest.raises(InvalidOptionError):
        app.signal("a\nb")
    assert handle.status() is JobStatus.WAITING
