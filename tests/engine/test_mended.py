"""Bad days found by trying to break it: each is here so that it stays mended."""

import asyncio
import logging
from collections.abc import Iterator
from datetime import timedelta

import pytest

from tests.engine import jobs
from tests.engine.apps import LONG, ONLY_WAKEUPS, Apps, Gate, settled, until
from windlass import Backoff, JobStatus, Windlass
from windlass.domain.clock import VirtualClock
from windlass.stores.plans import search

SLOTS = 5


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


def test_cancels_that_meet_a_job_at_its_first_step_free_its_slot(app: Windlass):
    """J2.2: a task that is cancelled before it began would never end by itself."""
    note = app.job(jobs.anote).using(tags=["t"])
    with app.worker(concurrency=SLOTS) as worker:
        for _ in range(8):
            app.enqueue_many([note.bind("x") for _ in range(200)])
            app.cancel_by_tag("t")
        assert app.job(jobs.aadd).enqueue(1, 2).result(timeout=LONG) == 3
        node = worker.node
        assert node is not None
        until(lambda: node.slots.running == 0)


def test_retries_of_a_paused_queue_wait_like_everything_else_in_it(app: Windlass):
    """J1.7: a job that comes back with a delay does not open the queue again."""
    retried = app.job(max_retries=1000, backoff=Backoff.fixed(0.02))(jobs.fail).using(queue="mail")
    with app.worker():
        handle = retried.enqueue("x")
        until(lambda: app.get(handle.id).attempts > 2)
        app.pause_queue("mail")

        def at_rest() -> bool:
            before = app.get(handle.id).attempts
            asyncio.run(asyncio.sleep(0.3))
            return app.get(handle.id).attempts == before

        until(at_rest)
        before = app.get(handle.id).attempts
        app.job(jobs.add).enqueue(1, 2).result(timeout=LONG)
        assert app.get(handle.id).attempts == before
        app.resume_queue("mail")
        until(lambda: app.get(handle.id).attempts > before)
        handle.cancel()


def test_a_claim_that_brings_a_job_canceled_meanwhile_does_not_begin_it(app: Windlass, gate: Gate):
    """J2.2: the word of the cancel may be quicker than the answer to the claim."""
    note, hold = app.job(jobs.note), app.job(jobs.hold)
    with app.worker(concurrency=1) as worker:
        first = hold.enqueue(gate.name)
        gate.wait_entered()
        second = note.enqueue("never")
        node = worker.node
        assert node is not None
        node.wakeups.canceled([str(second.id)])  # told before it is claimed
        asyncio.run_coroutine_threadsafe(asyncio.sleep(0), node._loop).result(LONG)
        gate.open()
        assert first.result(timeout=LONG) == "let go"
        until(lambda: second.status() is JobStatus.RUNNING)
        assert note.enqueue("after").result(timeout=LONG) == "after"
        assert second.cancel()
    assert jobs.seen == ["after"]


def test_a_duplicate_does_not_swallow_the_wakeup_of_the_job_before(apps: Apps):
    """J3.6: words that are owed for stored jobs do not ride in a commit that stores nothing."""
    worker, client = apps(settings=ONLY_WAKEUPS), apps()
    worker.job(jobs.add)
    add = client.job(jobs.add)
    keyed = add.using(idempotency_key="k")
    keyed.enqueue(0, 0)
    with worker.worker():
        for number in range(10):
            handles = [add.enqueue(number, 1), add.enqueue(number, 2)]  # the second owes its word
            assert keyed.enqueue(0, 0).duplicate
            assert [handle.result(timeout=LONG) for handle in handles] == [number + 1, number + 2]


def test_retry_many_looks_on_until_it_has_enough(app: Windlass, monkeypatch: pytest.MonkeyPatch):
    """J2.4: however many others have failed since."""
    monkeypatch.setattr(search, "MOST_READ", 100)
    deep = app.job(jobs.fail).using(queue="deep").enqueue("x")
    app.enqueue_many([app.job(jobs.afail).bind("x") for _ in range(400)])
    with app.worker():
        until(lambda: not app.find(status="PENDING").items and not app.find(status="RUNNING").items)
    assert app.retry_many(queue="deep") == 1
    assert deep.status() is JobStatus.PENDING


def test_a_replacement_may_also_supersede_the_holder_of_its_key(app: Windlass):
    """J2.4, J1.5: the job it replaces and the holder of its business key, in one transaction."""
    note = app.job(jobs.note).using(delay=600)
    holder, old = note.using(business_key="order:7").enqueue("holder"), note.enqueue("old")
    new = app.replace(old.id, note.using(business_key="order:7", on_conflict="replace").bind("new"))
    assert [handle.status() for handle in (holder, old, new)] == [JobStatus.CANCELED] * 2 + [JobStatus.PENDING]
    assert {app.get(handle.id).superseded_by for handle in (holder, old)} == {new.id}


def test_creation_times_are_found_by_a_clock_of_the_tests_own(apps: Apps):
    """api.md: ids are made by the wall clock, creation times by the store's."""
    clock = VirtualClock()
    app = apps(clock=clock)
    clock.advance(10 * 365 * 86_400)
    handle = app.job(jobs.note).using(delay=60).enqueue("x")
    made = app.get(handle.id).created_at
    assert [job.id for job in app.find(created_after=made - timedelta(seconds=1))] == [handle.id]


class Metres(float):
    """A number of another library."""


def raise_odd_numbers() -> None:
    raise ValueError("bad value", Metres(1.5))


def say_odd_things() -> str:
    from windlass import JobContext

    context = JobContext.current()
    context.progress(1, None, "name \udcff")
    logging.getLogger("shop").warning("hi", extra={"far": Metres(2.0)})
    context.log.info("payload %s", "a" * 9_000)
    return "fine"


def test_odd_values_from_a_job_process_are_the_jobs_business_only(app: Windlass):
    """J4.2, J7.4: neither a failure with odd numbers in it nor odd words cost the process."""
    failing = app.job(executor="process")(raise_odd_numbers).enqueue()
    saying = app.job(executor="process")(say_odd_things).enqueue()
    with app.worker():
        job = settled(app, failing.id)
        assert (job.status, job.error_class, job.crash_count, job.attempts) == (JobStatus.FAILED, "ValueError", 0, 1)
        assert saying.result(timeout=LONG) == "fine"
        assert app.get(saying.id).crash_count == 0
    (line,) = [line.text for line in app.log_lines(saying.id) if line.text.startswith("payload")]
    assert (len(line) > 1900, line.endswith("…")) == (True, True)
