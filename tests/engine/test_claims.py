"""What a node takes from its queues: in which order, how much, how often it looks."""

import asyncio

import pytest

from tests.engine import jobs
from tests.engine.apps import LONG, ONLY_WAKEUPS, Apps, Gate, until
from windlass import Backoff, InvalidOptionError, JobStatus, PollerSettings, Priority, Settings, Windlass
from windlass.domain.poll_interval import PollObservation
from windlass.engine import completer


def test_higher_priorities_run_first_and_equal_ones_in_order(app: Windlass):
    """J1.3, J3.1: LOWEST 0 to CRITICAL 4, NORMAL by default, integers up to 9; then due time, then id."""
    note = app.job(jobs.note)
    for priority in (Priority.LOWEST, Priority.HIGH, 9, Priority.CRITICAL, Priority.LOW):
        note.using(priority=priority).enqueue(priority.name if isinstance(priority, Priority) else str(priority))
    last = note.enqueue("NORMAL")
    app.enqueue_many([note.bind(f"bulk {n}") for n in range(3)])
    with app.worker(concurrency=1):
        until(lambda: len(jobs.seen) == 9)
    normal = ["NORMAL", "bulk 0", "bulk 1", "bulk 2"]
    assert jobs.seen == ["9", "CRITICAL", "HIGH", *normal, "LOW", "LOWEST"]
    assert app.get(last.id).priority == Priority.NORMAL


@pytest.mark.parametrize("wrong", [-1, 10, True, "HIGH", 2.5])
def test_a_priority_outside_of_0_to_9_is_refused(wrong: object):
    """J1.3: the error says what is accepted."""
    app = Windlass("sqlite://", settings=Settings())
    with pytest.raises(InvalidOptionError, match="priority"):
        app.job(priority=wrong)(jobs.note)  # type: ignore[call-overload]
    app.close()


def test_a_node_with_one_slot_does_not_claim_the_jobs_of_other_nodes(apps: Apps, gate: Gate):
    """J3.3: claims are bounded by free capacity; what one node cannot start, another finds."""
    busy, idle = apps(settings=ONLY_WAKEUPS), apps()
    hold, note = busy.job(jobs.hold), busy.job(jobs.note)
    idle.job(jobs.note)
    with busy.worker(concurrency=1):
        held = hold.enqueue(gate.name)
        gate.wait_entered()
        handles = busy.enqueue_many([note.bind(str(n)) for n in range(10)])
        with idle.worker():
            assert [handle.result(timeout=LONG) for handle in handles] == [str(n) for n in range(10)]
        assert held.status() is JobStatus.RUNNING
        gate.open()
        assert held.result(timeout=LONG) == "let go"


@pytest.mark.parametrize("size", [1, 10_000])
def test_a_node_that_becomes_slow_releases_jobs_it_claimed_ahead(apps: Apps, gate: Gate, size: int):
    """J3.3: a quick node claims a little ahead; when a slow job stops it, the rest goes back to its queue in time."""
    quick, idle = apps(), apps()
    hold, note = quick.job(jobs.ahold), quick.job(jobs.anote)
    text = "x" * size
    calls = [note.bind(text) for _ in range(300)]
    handles = quick.enqueue_many([*calls[:200], hold.bind(gate.name), *calls[200:]])
    idle.job(jobs.anote)
    with quick.worker(concurrency=1):
        gate.wait_entered()
        with idle.worker():
            assert {handle.join(timeout=LONG) for handle in handles[201:]} == {JobStatus.SUCCEEDED}
        assert handles[200].status() is JobStatus.RUNNING
        gate.open()
        assert handles[200].result(timeout=LONG) == "let go"
    assert len(jobs.seen) == 300, "each ran once"
    assert {quick.get(handle.id).attempts for handle in handles} == {1}


def test_released_jobs_are_claimed_again_when_the_slow_job_ends(apps: Apps, gate: Gate):
    """J3.3, J3.6: a lone node that hands claims back remembers them, and needs no poll to find them."""
    app = apps(settings=ONLY_WAKEUPS)
    hold, note = app.job(jobs.ahold), app.job(jobs.anote)
    calls = [note.bind(str(n)) for n in range(220)]
    handles = app.enqueue_many([*calls[:200], hold.bind(gate.name), *calls[200:]])
    with app.worker(concurrency=1):
        gate.wait_entered()
        until(lambda: {handle.status() for handle in handles[201:]} == {JobStatus.PENDING})
        gate.open()
        assert {handle.join(timeout=LONG) for handle in handles} == {JobStatus.SUCCEEDED}
    assert len(jobs.seen) == 220


def test_a_node_with_too_many_unwritten_outcomes_claims_again_once_they_are_written(
    apps: Apps, monkeypatch: pytest.MonkeyPatch
):
    """J3.3, J7.8: too many unwritten outcomes stop the claims, and nothing but their writing sets them going again."""
    monkeypatch.setattr(completer, "BACKLOG", 1)
    app = apps(settings=ONLY_WAKEUPS)
    note = app.job(jobs.anote)
    handles = app.enqueue_many([note.bind(str(n)) for n in range(10)])
    with app.worker(concurrency=1):
        assert {handle.join(timeout=LONG) for handle in handles} == {JobStatus.SUCCEEDED}


class Recorded:
    """A polling strategy that keeps what it was shown, and always says the same."""

    def __init__(self, delay: float) -> None:
        self.delay = delay
        self.seen: list[PollObservation] = []

    def next_delay(self, observation: PollObservation) -> float:
        self.seen.append(observation)
        return self.delay


class Dumb:
    """A coordinator that notifies no node: every wakeup is lost."""

    def notify_new_work(self, queue: str, priority: int) -> None: ...
    def listen(self, callback: object) -> None: ...
    def close(self) -> None: ...


def test_the_delay_holds_only_after_a_claim_that_came_back_short(apps: Apps):
    """J3.5: full batches follow each other at once; the strategy is asked when there was less than asked for."""
    strategy = Recorded(600)
    app = apps(polling=strategy, settings=Settings(poller=PollerSettings(batch_size=3)))
    note = app.job(jobs.anote)
    handles = app.enqueue_many([note.bind(str(n)) for n in range(30)])
    with app.worker(concurrency=3):
        assert {handle.join(timeout=LONG) for handle in handles} == {JobStatus.SUCCEEDED}
        until(lambda: strategy.seen)
    asked, got = strategy.seen[-1].recent[-1]
    assert got < asked <= 3


def test_work_whose_wakeup_was_lost_is_found_by_polling(apps: Apps):
    """J3.5, J3.6: a lost wakeup costs latency, never work."""
    polled = apps(polling=Recorded(0.05))
    polled.job(jobs.add)
    silent = apps(coordinator=Dumb())
    with polled.worker():
        assert silent.job(jobs.add).enqueue(1, 2).result(timeout=LONG) == 3


def test_the_strategy_sees_wakeups_idleness_and_load(apps: Apps, gate: Gate):
    """J3.5: the strategy is a function of what the poller observed."""
    strategy = Recorded(0.02)
    app = apps(polling=strategy)
    hold = app.job(jobs.ahold)
    with app.worker(concurrency=2):
        until(lambda: strategy.seen)
        handle = hold.enqueue(gate.name)
        gate.wait_entered()
        until(lambda: any(seen.utilisation == 0.5 for seen in list(strategy.seen)))
        gate.open()
        handle.join(timeout=LONG)
        until(lambda: strategy.seen[-1].utilisation == 0)
    assert any(seen.woken for seen in strategy.seen)
    assert max(seen.idle_for for seen in strategy.seen) > 0
    assert max(len(seen.recent) for seen in strategy.seen) <= 10


def test_a_worker_serves_only_the_queues_it_was_given(apps: Apps):
    """J1.7, J3.1: a worker serves all queues or a chosen list."""
    app, other = apps(), apps()
    note, other_note = app.job(jobs.note), other.job(jobs.note)
    mine = note.using(queue="mine").enqueue("mine")
    theirs = note.using(queue="theirs").enqueue("theirs")
    with app.worker(queues=["mine", "not-there-yet"]):
        assert mine.result(timeout=LONG) == "mine"
        late = note.using(queue="not-there-yet").enqueue("late")
        assert late.result(timeout=LONG) == "late"
        assert theirs.status() is JobStatus.PENDING
        with other.worker():
            assert other_note.handle(theirs.id).result(timeout=LONG) == "theirs"


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
