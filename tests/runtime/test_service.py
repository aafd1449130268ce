"""The skeleton of background services, on a loop and on a thread."""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable

import pytest

from tests.runtime.sample_services import FAST, Kind, LoopService, OwnThreadService, both_kinds
from windlass.runtime.error_handling import MAX_LOGGED, ErrorHandling
from windlass.runtime.service import Bell, Service
from windlass.runtime.thread_service import ThreadService


def scripted(*steps: float | BaseException | None) -> Callable[[], float | None]:
    """Work that gives or raises one step after the other, and then sleeps until woken."""
    left = iter(steps)

    def work() -> float | None:
        step = next(left, None)
        if isinstance(step, BaseException):
            raise step
        return step

    return work


@both_kinds
async def test_a_service_ticks_at_once_and_then_sleeps_as_long_as_the_tick_returns(kind: Kind):
    service = kind(scripted(0.001, 0, None))
    service.signals.ticked.arm()
    service.start()
    assert [await service.signals.ticked.wait() for _ in range(3)] == [0.001, 0, None]
    with pytest.raises(TimeoutError):
        await service.signals.ticked.wait(0.03)
    await service.astop()
    assert service.check.ticks == 3


@both_kinds
async def test_wake_ends_the_sleep_from_the_loop_and_from_other_threads(kind: Kind):
    service = kind(lambda: None)
    service.signals.ticked.arm()
    service.start()
    await service.signals.ticked.wait()
    service.wake()
    await service.signals.ticked.wait()
    await asyncio.to_thread(service.wake)
    await service.signals.ticked.wait()
    await service.astop()


async def test_a_bell_wakes_the_service_that_has_it_in_each_of_its_runs():
    """Whatever has news for a service needs its bell, and not the service."""
    bell = Bell()
    bell.ring()  # nothing sleeps yet

    class Woken(Service):
        async def tick(self) -> float | None:
            return None

    service = Woken("woken", bell=bell)
    for _ in range(2):
        service.signals.ticked.arm()
        service.start()
        await service.signals.ticked.wait()
        bell.ring()
        await service.signals.ticked.wait()
        await asyncio.to_thread(bell.ring)
        await service.signals.ticked.wait()
        await service.stop()
        bell.ring()  # it has ended


@both_kinds
async def test_a_wake_during_a_tick_is_followed_by_another_tick(kind: Kind):
    service = kind(lambda: None)

    def wake_the_first_time() -> None:
        if service.check.ticks == 0:
            service.wake()

    service.work = wake_the_first_time
    service.signals.ticked.arm()
    service.start()
    await service.signals.ticked.wait()
    await service.signals.ticked.wait()
    await service.astop()
    assert service.check.ticks == 2


@both_kinds
async def test_starting_twice_runs_once_and_stopping_twice_is_harmless(kind: Kind):
    service = kind(lambda: None)
    await service.astop()
    assert not service.alive
    service.signals.ticked.arm()
    service.signals.stopped.arm()
    service.start()
    service.start()
    assert service.alive
    await service.signals.ticked.wait()
    await service.astop()
    await service.astop()
    assert not service.alive
    await service.signals.stopped.wait()
    with pytest.raises(TimeoutError):
        await service.signals.stopped.wait(0.02)
    service.wake()


@both_kinds
async def test_several_may_stop_a_service_at_once(kind: Kind):
    service = kind(lambda: 0.001)
    service.start()
    await asyncio.gather(*(service.astop() for _ in range(5)))
    assert not service.alive


@both_kinds
async def test_a_stopped_service_can_be_started_again(kind: Kind):
    service = kind(lambda: None)
    service.signals.ticked.arm()
    for _ in range(3):
        service.start()
        await service.signals.ticked.wait()
        await service.astop()
    assert service.check.ticks == 3


@both_kinds
async def test_an_error_is_logged_once_per_kind_and_the_service_continues(kind: Kind, caplog: pytest.LogCaptureFixture):
    errors = [ValueError("a"), ValueError("b"), KeyError("c"), ValueError("d")]
    service = kind(scripted(*errors, None, ValueError("again"), None), ErrorHandling(0.001, 0.004, describe=repr))
    service.signals.ticked.arm()
    with caplog.at_level(logging.INFO, "windlass.service"):
        service.start()
        await service.signals.ticked.wait()
        service.wake()
        await service.signals.ticked.wait()
        await service.astop()
    texts = [record.getMessage() for record in caplog.records]
    parts = [
        "ValueError('a')",
        "KeyError('c')",
        "works again after 4 failures",
        "ValueError('again')",
        "after 1 failures",
    ]
    assert [part for part, text in zip(parts, texts, strict=True) if part not in text] == []


@both_kinds
async def test_an_intermittent_error_is_logged_a_limited_number_of_times(kind: Kind, caplog: pytest.LogCaptureFixture):
    """J7.8: a database that is gone and back many times a second does not fill the disk with log lines."""
    flapping: list[float | BaseException | None] = [ValueError("gone"), 0] * 50
    service = kind(scripted(*flapping, None), ErrorHandling(0.0001, 0.0001, describe=repr))
    service.signals.ticked.arm()
    with caplog.at_level(logging.INFO, "windlass.service"):
        service.start()
        while await service.signals.ticked.wait() is not None:
            pass
    await service.astop()
    said = [record.getMessage() for record in caplog.records]
    assert len([text for text in said if "failed, trying again" in text]) == MAX_LOGGED
    assert len([text for text in said if "works again" in text]) == MAX_LOGGED
    assert ["comes and goes" in text for text in said] == [False] * (2 * MAX_LOGGED - 2) + [True, False]


@both_kinds
async def test_errors_are_logged_without_their_message_unless_described(kind: Kind, caplog: pytest.LogCaptureFixture):
    def broken(_: BaseException) -> str:
        raise RuntimeError

    for errors in (FAST, ErrorHandling(0.001, 0.004, describe=broken)):
        service = kind(scripted(ValueError("password=hunter2")), errors)
        service.signals.failed.arm()
        service.start()
        await service.signals.failed.wait()
        await service.astop()
    assert len(caplog.records) == 2
    assert all("ValueError" in record.getMessage() for record in caplog.records)
    assert "hunter2" not in caplog.text


@both_kinds
async def test_wakeups_do_not_shorten_the_pause_after_an_error_but_stop_does(kind: Kind):
    service = kind(scripted(ValueError()), ErrorHandling(first_delay=60, max_delay=60))
    service.signals.failed.arm()
    service.signals.ticked.arm()
    service.start()
    await service.signals.failed.wait()
    for _ in range(3):
        service.wake()
        await asyncio.sleep(0)
    with pytest.raises(TimeoutError):
        await service.signals.ticked.wait(0.03)
    await asyncio.wait_for(service.astop(), 90)
    assert service.check.ticks == 1


@both_kinds
async def test_a_service_may_stop_itself(kind: Kind):
    service = kind(lambda: 0)
    if isinstance(service, ThreadService):
        service.work = service.stop
    else:
        service = StopsItself(lambda: 0)
    service.signals.stopped.arm()
    service.start()
    await service.signals.stopped.wait()
    assert service.check.ticks == 1
    await service.astop()


class StopsItself(LoopService):
    async def tick(self) -> float | None:
        with self.check:
            await self.stop()
        return 0


class Stuck(Service):
    """A tick that ends only when it is cancelled."""

    def __init__(self) -> None:
        super().__init__("stuck", FAST)
        self.cancelled = False

    async def tick(self) -> float | None:
        self.signals.ticked.send(None)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        return None


async def test_a_tick_that_does_not_end_is_cancelled_after_the_grace():
    service = Stuck()
    service.signals.ticked.arm()
    service.start()
    await service.signals.ticked.wait()
    await service.stop(grace=0.01)
    assert service.cancelled
    assert not service.alive


async def test_a_tick_that_ignores_being_cancelled_is_reported(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("windlass.runtime.service._CANCEL_GRACE", 0.01)
    go_on = asyncio.Event()

    class Stubborn(Service):
        async def tick(self) -> float | None:
            while not go_on.is_set():
                self.signals.ticked.send(None)
                with contextlib.suppress(asyncio.CancelledError):
                    await go_on.wait()
            return None

    service = Stubborn("stubborn")
    service.signals.ticked.arm()
    service.start()
    await service.signals.ticked.wait()
    await service.stop(grace=0)
    assert "stubborn does not stop" in caplog.text
    go_on.set()
    await service.stop()
    assert not service.alive


async def test_a_tick_under_way_may_finish_when_the_service_stops():
    go_on = asyncio.Event()
    finished = []

    class Slow(Service):
        async def tick(self) -> float | None:
            self.signals.ticked.send(None)
            await go_on.wait()
            finished.append(True)
            return 60

    service = Slow("slow")
    service.signals.ticked.arm()
    service.start()
    await service.signals.ticked.wait()
    stopping = asyncio.create_task(service.stop())
    await asyncio.sleep(0)
    go_on.set()
    await stopping
    assert finished == [True]


async def test_a_cancellation_inside_a_tick_is_an_error_like_any_other():
    service = LoopService(scripted(asyncio.CancelledError(), None))
    service.signals.ticked.arm()
    service.start()
    await service.signals.ticked.wait()
    assert service.alive
    await service.stop()


async def test_cancelling_the_whole_loop_ends_the_service():
    service = LoopService(lambda: None)
    service.signals.ticked.arm()
    service.start()
    await service.signals.ticked.wait()
    (task,) = (task for task in asyncio.all_tasks() if task.get_name() == "windlass sample")
    task.cancel()
    await asyncio.wait({task})
    assert not service.alive
    await service.stop()


def test_a_service_can_run_on_one_loop_after_another():
    service = LoopService(lambda: None)
    service.signals.ticked.arm()

    async def live(*, stop: bool) -> None:
        service.start()
        await service.signals.ticked.wait()
        if stop:
            await service.stop()

    asyncio.run(live(stop=False))
    service.wake()
    waker = threading.Thread(target=service.wake)
    waker.start()
    waker.join()
    asyncio.run(live(stop=True))
    assert service.check.ticks == 2


def test_a_thread_tick_that_takes_too_long_is_reported_and_not_waited_for(caplog: pytest.LogCaptureFixture):
    release = threading.Event()
    service = OwnThreadService(lambda: 0 if release.wait() else None)
    service.start()
    service.stop(grace=0.01)
    assert "did not stop" in caplog.text
    service.start()
    release.set()
    service.stop()
    assert not service.check.overlapped
