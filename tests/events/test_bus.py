"""The event bus: order, sync and async listeners, loops and threads, failures."""

import asyncio
import functools
import logging
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from uuid import UUID

import pytest

from windlass.errors import ConfigurationError
from windlass.events.bus import EventBus
from windlass.events.types import Event, JobCanceled, JobCompleted, JobEvent, NodeLost

AT = datetime(2030, 1, 1, tzinfo=UTC)


def completed(number: int) -> JobCompleted:
    return JobCompleted(
        job_id=UUID(int=number), target="shop:charge", queue="default", at=AT, attempt=1, wait_ms=0, run_ms=0
    )


def canceled(number: int) -> JobCanceled:
    return JobCanceled(job_id=UUID(int=number), target="shop:charge", queue="default", at=AT)


LOST = NodeLost(at=AT, node="node-1", recovered=3)


def number(event: Event) -> int:
    assert event.job_id is not None
    return event.job_id.int


@pytest.fixture
def bus() -> Iterator[EventBus]:
    bus = EventBus(describe=lambda error: f"described {error!r}")
    yield bus
    bus.close()


async def test_events_come_in_the_order_they_were_published(bus: EventBus):
    """J5.8: events are delivered in order, even to a mix of sync and async subscribers."""
    seen: list[tuple[str, int]] = []

    @bus.on(JobCompleted)
    def one(event: JobCompleted) -> None:
        seen.append(("sync", number(event)))

    @bus.on(JobCompleted)
    async def two(event: JobCompleted) -> None:
        await asyncio.sleep(0)
        seen.append(("async", number(event)))

    for start in range(0, 600, 3):
        bus.publish([completed(start + step) for step in range(3)])
        if start % 30 == 0:
            await asyncio.sleep(0)
    assert await bus.drain()
    assert seen == [(kind, index) for index in range(600) for kind in ("sync", "async")]


async def test_publishing_returns_before_any_listener_ran(bus: EventBus):
    seen: list[Event] = []
    bus.subscribe(JobCompleted, seen.append)
    bus.publish([completed(1)])
    assert seen == []
    assert await bus.drain()
    assert seen == [completed(1)]


async def test_subscribers_of_a_base_class_get_events_of_subclasses_and_others_do_not(bus: EventBus):
    received: dict[str, list[Event]] = {"all": [], "jobs": [], "nodes": []}
    bus.subscribe(Event, received["all"].append)
    bus.subscribe(JobEvent, received["jobs"].append)
    bus.subscribe(NodeLost, received["nodes"].append)
    bus.publish([completed(1), LOST, canceled(2)])
    await bus.drain()
    assert received == {"all": [completed(1), LOST, canceled(2)], "jobs": [completed(1), canceled(2)], "nodes": [LOST]}


async def test_only_events_with_subscribers_are_wanted(bus: EventBus):
    assert not bus.wanted(JobCompleted)
    end = bus.subscribe(JobEvent, lambda event: None)
    assert bus.wanted(JobCompleted)
    assert not bus.wanted(NodeLost)
    end()
    end()
    assert not bus.wanted(JobCompleted)
    bus.publish([completed(1)])
    assert await bus.drain()


async def test_sync_listeners_run_on_one_thread_that_is_not_the_loops(bus: EventBus):
    threads: set[int] = set()
    bus.subscribe(JobCompleted, lambda event: threads.add(threading.get_ident()))
    for index in range(20):
        bus.publish([completed(index)])
        await bus.drain()
    await asyncio.to_thread(bus.publish, [completed(99)])
    await bus.drain()
    assert len(threads) == 1
    assert threading.get_ident() not in threads


async def test_a_blocking_listener_does_not_block_the_loop(bus: EventBus):
    release = threading.Event()
    bus.subscribe(JobCompleted, lambda event: release.wait(90))
    bus.publish([completed(1)])
    for _ in range(10):
        await asyncio.sleep(0)
    release.set()
    assert await bus.drain()


async def test_async_listeners_run_on_the_loop_that_published(bus: EventBus):
    loops: list[asyncio.AbstractEventLoop] = []

    @bus.on(JobCompleted)
    async def listener(event: JobCompleted) -> None:
        loops.append(asyncio.get_running_loop())

    bus.publish([completed(1)])
    await bus.drain()
    assert loops == [asyncio.get_running_loop()]


async def test_a_failing_subscriber_is_logged_and_does_not_affect_others(
    bus: EventBus, caplog: pytest.LogCaptureFixture
):
    """J5.8: a failing subscriber is logged and stops no other."""
    seen: list[int] = []

    @bus.on(JobCompleted)
    def breaks(event: JobCompleted) -> None:
        raise ValueError("sync")

    @bus.on(JobCompleted)
    async def breaks_later(event: JobCompleted) -> None:
        await asyncio.sleep(0)
        raise SystemExit("async")

    @bus.on(JobCompleted)
    async def cancels(event: JobCompleted) -> None:
        raise asyncio.CancelledError

    bus.subscribe(JobCompleted, lambda event: seen.append(number(event)))
    with caplog.at_level(logging.ERROR, "windlass.events"):
        bus.publish([completed(1), completed(2)])
        assert await bus.drain()
    assert seen == [1, 2]
    texts = [record.getMessage() for record in caplog.records]
    assert len(texts) == 6
    assert texts[0].endswith("breaks failed on JobCompleted: described ValueError('sync')")
    assert "breaks_later failed on JobCompleted: described SystemExit('async')" in texts[1]
    assert "cancels failed on JobCompleted: described CancelledError()" in texts[2]


async def test_an_error_that_cannot_be_described_is_logged_by_its_class(caplog: pytest.LogCaptureFixture):
    def broken(error: BaseException) -> str:
        raise RuntimeError

    for describe in (broken, None):
        bus = EventBus(describe) if describe else EventBus()
        bus.subscribe(JobCompleted, lambda event: 1 / 0)
        bus.publish([completed(1)])
        await bus.drain()
        bus.close()
    assert [record.getMessage().endswith("JobCompleted: ZeroDivisionError") for record in caplog.records] == [True] * 2


async def test_the_name_of_any_kind_of_listener_is_logged(bus: EventBus, caplog: pytest.LogCaptureFixture):
    class Alerts:
        def raised(self, event: Event) -> None:
            raise ValueError

        async def __call__(self, event: Event) -> None:
            raise ValueError

    def pair(prefix: str, event: Event) -> None:
        raise ValueError

    bus.subscribe(JobCompleted, Alerts().raised)
    bus.subscribe(JobCompleted, Alerts())
    bus.subscribe(JobCompleted, functools.partial(pair, "x"))
    bus.publish([completed(1)])
    await bus.drain()
    names = [record.getMessage().split(" failed")[0].rpartition("<locals>.")[2] for record in caplog.records]
    assert names == ["Alerts.raised", "Alerts", "pair"]


def test_events_published_without_a_loop_reach_sync_and_async_listeners_in_order(bus: EventBus):
    seen: list[tuple[str, int]] = []

    @bus.on(JobCompleted)
    async def one(event: JobCompleted) -> None:
        await asyncio.sleep(0)
        seen.append(("async", number(event)))

    bus.subscribe(JobCompleted, lambda event: seen.append(("sync", number(event))))
    bus.subscribe(JobCompleted, lambda event: one(event))  # noqa: PLW0108 - a sync function that gives a coroutine
    for index in range(20):
        bus.publish([completed(index)])
    assert bus.flush()
    assert seen == [(kind, index) for index in range(20) for kind in ("async", "sync", "async")]


def test_a_bus_serves_several_loops_one_after_another(bus: EventBus):
    seen: list[int] = []

    @bus.on(JobCompleted)
    async def listener(event: JobCompleted) -> None:
        seen.append(number(event))

    bus.subscribe(JobCompleted, lambda event: seen.append(-number(event)))

    async def publish(index: int) -> bool:
        bus.publish([completed(index)])
        return await bus.drain()

    assert [asyncio.run(publish(index)) for index in (1, 2, 3)] == [True] * 3
    assert seen == [1, -1, 2, -2, 3, -3]


async def test_a_listener_may_publish(bus: EventBus):
    seen: list[Event] = []

    @bus.on(JobCompleted)
    async def one(event: JobCompleted) -> None:
        bus.publish([canceled(number(event))])

    @bus.on(JobCompleted)
    def two(event: JobCompleted) -> None:
        bus.publish([LOST])

    bus.subscribe(JobCanceled, seen.append)
    bus.subscribe(NodeLost, seen.append)
    bus.publish([completed(1)])
    assert await bus.drain()
    assert set(seen) == {canceled(1), LOST}


async def test_closing_waits_no_longer_than_its_timeout(bus: EventBus, caplog: pytest.LogCaptureFixture):
    release = threading.Event()
    never = asyncio.Event()
    bus.subscribe(JobCompleted, lambda event: release.wait(90))

    @bus.on(NodeLost)
    async def hangs(event: NodeLost) -> None:
        await never.wait()

    for event in (completed(1), LOST):
        bus.publish([event, event])
        assert not await bus.drain(0.02)
        assert "did not end within 0.02 s" in caplog.text
        caplog.clear()
    release.set()
    assert await bus.drain()


async def test_too_many_waiting_events_are_dropped_and_counted(caplog: pytest.LogCaptureFixture):
    bus = EventBus(max_waiting=10)
    seen: list[Event] = []
    bus.subscribe(JobCompleted, seen.append)
    for index in range(25):
        bus.publish([completed(index)])
    assert await bus.drain()
    assert [number(event) for event in seen] == list(range(10))
    assert "10 calls are waiting" in caplog.text
    assert "15 calls were dropped" in caplog.text
    bus.publish([completed(99)])
    assert await bus.drain()
    assert number(seen[-1]) == 99
    bus.close()


async def test_a_closed_bus_starts_again_when_it_is_used(bus: EventBus):
    seen: list[Event] = []
    bus.subscribe(JobCompleted, seen.append)
    for index in range(2):
        bus.publish([completed(index)])
        await bus.drain()
        bus.close()
    assert len(seen) == 2


@pytest.mark.parametrize("nonsense", [None, int, "JobFailed", lambda event: None])
def test_listening_to_what_is_no_event_is_refused(bus: EventBus, nonsense):
    with pytest.raises(ConfigurationError, match=r"an event class, as in on\(JobFailed\)"):
        bus.on(nonsense)
    with pytest.raises(ConfigurationError, match="an event class"):
        bus.subscribe(nonsense, print)
    with pytest.raises(ConfigurationError, match="takes one event"):
        bus.subscribe(JobCompleted, 3)  # type: ignore[arg-type]
