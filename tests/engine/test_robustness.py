"""What must not bring an application down: interrupts, odd values, broken extensions, and callers that give up."""

import gc
import threading
import weakref
from typing import Any

import pytest

from tests.engine import jobs
from tests.engine.apps import LONG, Apps, settled, until
from windlass import ConfigurationError, InvalidOptionError, JobStatus, RetryAfter, StoreUnavailableError, Windlass
from windlass.stores.channels import WORK
from windlass.stores.plans import cluster
from windlass.stores.postgres.connections import MOST_CONNECTIONS
from windlass.stores.postgres.wire import completed
from windlass.submission.caller_group import Signals


class Later(RetryAfter):
    """A user's own, which sets the delay as a number."""

    def __init__(self) -> None:
        super().__init__(1)
        self.delay = 0.01  # type: ignore[assignment]


class Odd(RetryAfter):
    """A user's own, with an invalid delay."""

    def __init__(self) -> None:
        super().__init__(1)
        self.delay = "soon"  # type: ignore[assignment]


class Unreadable(RetryAfter):
    """An exception that cannot even be looked at."""

    def __init__(self) -> None:
        Exception.__init__(self, "unreadable")

    def __getattribute__(self, name: str) -> Any:
        if name == "delay":
            raise RuntimeError("no delay")
        return super().__getattribute__(name)


def later() -> None:
    raise Later


def unreadable() -> None:
    raise Unreadable


def odd() -> None:
    raise Odd


def test_a_delay_set_as_a_number_is_taken(app: Windlass):
    """J5.2: the exception's own delay, also in a subclass that sets it itself."""
    job = app.job(max_retries=1)(later)
    with app.worker():
        handle = job.enqueue()
        assert handle.join(timeout=LONG) is JobStatus.FAILED
    assert app.get(handle.id).attempts == 2


def test_an_ending_on_which_no_verdict_can_be_passed_fails_the_job(app: Windlass):
    """J2.1, J4: nothing stays RUNNING because of an odd value in a user's exception."""
    job = app.job(max_retries=1)(unreadable)
    with app.worker():
        handle = job.enqueue()
        assert handle.join(timeout=LONG) is JobStatus.FAILED
    assert settled(app, handle.id).reason == "non_retryable"


def test_an_invalid_delay_of_a_retry_is_replaced_by_the_backoff(app: Windlass, caplog: pytest.LogCaptureFixture):
    """J5.2: the job is retried, and the log says why not after the given delay."""
    job = app.job(max_retries=1)(odd)
    with app.worker():
        ended = settled(app, job.enqueue().id)
    assert (ended.reason, ended.attempts) == ("retry_exhausted", 2)
    assert "RetryAfter.delay answered with str" in caplog.text


def test_a_caller_interrupted_while_it_waits_for_the_leader_does_not_block_others(app: Windlass):
    """J1.1: group commit: one caller's Ctrl-C must not make the next enqueue hang."""
    add = app.job(jobs.add)
    add.enqueue(0, 0)
    group = app._submission_parts.commits._groups._threads
    run = app.database.run
    leading, go_on = threading.Event(), threading.Event()

    def slow(*args, **kwargs):
        leading.set()
        assert go_on.wait(LONG)
        return run(*args, **kwargs)

    class Interrupted(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            raise KeyboardInterrupt

    app.database.run = slow  # type: ignore[method-assign]
    leader = threading.Thread(target=add.enqueue, args=(1, 1))
    leader.start()
    assert leading.wait(LONG)
    follower = pytest.MonkeyPatch()
    follower.setattr(group, "_signals", Signals(Interrupted, threading.Event.set))
    with pytest.raises(KeyboardInterrupt):
        add.enqueue(2, 2)
    follower.undo()
    app.database.run = run  # type: ignore[method-assign]
    go_on.set()
    leader.join(LONG)
    assert add.enqueue(3, 3).status() is JobStatus.PENDING
    assert not group._led


def test_waiting_for_a_result_ends_with_an_error_when_the_application_closes(apps: Apps):
    """J7: after closing no caller waits for ever."""
    app = apps()
    handle = app.job(jobs.add).enqueue(1, 1)
    errors: list[BaseException] = []

    def wait() -> None:
        try:
            handle.result()
        except StoreUnavailableError as error:
            errors.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    until(lambda: app._results._awaited)
    app.close()
    waiting.join(LONG)
    assert "was closed" in str(errors[0])


def test_nodes_of_ended_workers_are_garbage_collected(app: Windlass):
    """J7.6: entering and leaving workers for years leaks nothing."""
    app.job(jobs.add)
    nodes = [_enter_and_leave(app) for _ in range(3)]
    with app.worker():
        gc.collect()
        assert [node() for node in nodes] == [None] * 3


def _enter_and_leave(app: Windlass) -> weakref.ref[Any]:
    with app.worker() as worker:
        return weakref.ref(worker.node)


def test_a_url_that_cannot_be_read_is_refused_without_its_password():
    """J5.3: not even the driver's message about it is shown."""
    with pytest.raises(ConfigurationError, match="percent-encoded") as refused:
        Windlass("postgresql://bob:s3%zzcret@host/db")
    assert "s3%zzcret" not in str(refused.value)


def test_enqueue_many_refuses_anything_but_a_list_of_calls(app: Windlass):
    """J1.1: enqueue_many takes bound calls."""
    add = app.job(jobs.add)
    with pytest.raises(InvalidOptionError, match=r"charge\.bind\(42\)"):
        app.enqueue_many([add])  # type: ignore[arg-type]
    with pytest.raises(InvalidOptionError, match="takes a list of calls"):
        app.enqueue_many(add.bind(1, 1))  # type: ignore[arg-type]


class FailingCoordinator:
    """A user's coordinator whose server is down."""

    def notify_new_work(self, queue: str, priority: int) -> None:
        pass

    def listen(self, callback: object) -> None:
        raise ConnectionError("no route to the wakeup server")

    def close(self) -> None:
        pass


def test_a_worker_that_fails_to_start_registers_no_node(apps: Apps):
    """J7.2: half a node must not hold a lease, nor beat."""
    app = apps(coordinator=FailingCoordinator())
    app.job(jobs.add)
    with pytest.raises(ConnectionError), app.worker():
        pass
    assert app.database.read(cluster.live_nodes) == 0
    assert not [thread for thread in threading.enumerate() if thread.name == "windlass heartbeat"]


class Moody:
    """A user's policy that fails over one target."""

    def allows(self, target: str) -> bool:
        if target == "boom:boom":
            raise RuntimeError("the policy server is down")
        return True


def misspelt(value: "NoSuchClass") -> None:  # type: ignore[name-defined]  # noqa: F821 - what the test is about
    pass


def test_a_target_that_cannot_be_resolved_does_not_stop_the_claims_of_others(apps: Apps):
    """J6.3: asked for every lane before every claim, so the answer is yes or no, never an error."""
    app = apps(target_policy=Moody())
    broken = app.job(misspelt)
    with app.worker() as worker:
        assert worker.node is not None
        assert not worker.node.engine.targets.knows("boom:boom")
        assert worker.node.engine.targets.knows(broken.target), (
            "it is here: its jobs are claimed, and fail saying what is wrong"
        )


def test_a_notification_that_cannot_be_sent_does_not_fail_an_enqueue_that_is_stored(
    empty_postgres: str, monkeypatch: pytest.MonkeyPatch
):
    """J3.6: a lost wakeup costs latency; an error after the commit would make callers store the job twice."""
    apps = Apps(empty_postgres)
    app = apps()
    add = app.job(jobs.add)
    add.enqueue(1, 1)
    monkeypatch.setattr("windlass.stores.postgres.connections.WAIT_SECONDS", 0.05)
    pool = app.database._sync  # type: ignore[attr-defined]
    busy = [completed(pool.acquire()) for _ in range(MOST_CONNECTIONS)]
    app.database.notify(WORK, "default:2")
    for wire in busy:
        pool.release(wire)
    apps.close()
