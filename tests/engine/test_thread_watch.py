"""When a body on a thread is over: known in every case, or what it holds of a gate would be held for ever."""

import asyncio
import random

import pytest

from windlass.engine.thread_watch import BodyWatch
from windlass.runtime.threads import ThreadBodies

ROUNDS = 300


class Ended:
    """Counts what the watch reports."""

    def __init__(self) -> None:
        self.reported = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def __call__(self) -> None:
        self._loop.call_soon_threadsafe(self.reported.set)


def spin(times: int) -> int:
    for _ in range(times):
        pass
    return times


async def aspin(times: int) -> int:
    await asyncio.sleep(0)
    return spin(times)


async def test_the_end_of_a_body_is_reported_after_it_returned_or_raised():
    """J6.2: in the order in which it happened: before the result is published."""
    threads = ThreadBodies(asyncio.get_running_loop())
    ended = Ended()
    watched = BodyWatch(ended).around(spin, is_coroutine=False)
    assert await threads.run(lambda: watched(3)) == 3
    assert ended.reported.is_set()

    ended = Ended()
    failing = BodyWatch(ended).around(lambda: 1 // 0, is_coroutine=False)
    with pytest.raises(ZeroDivisionError):
        await threads.run(failing)
    assert ended.reported.is_set()
    threads.close()


async def test_a_coroutine_on_a_thread_is_watched_too():
    threads = ThreadBodies(asyncio.get_running_loop())
    ended = Ended()
    watched = BodyWatch(ended).around(aspin, is_coroutine=True)
    assert await threads.run(lambda: asyncio.run(watched(5))) == 5
    assert ended.reported.is_set()
    threads.close()


async def test_a_canceled_body_that_has_not_begun_never_begins():
    """J6.2: canceled before its thread took it; its place is free at once, and stays so."""
    entered = []
    watch = BodyWatch(Ended())
    watched = watch.around(lambda: entered.append(1), is_coroutine=False)
    assert watch.never_begins()
    with pytest.raises(IndexError):
        watched()
    assert entered == []


async def test_a_body_that_has_begun_is_not_reported_as_never_begun():
    watch = BodyWatch(Ended())
    watch.around(spin, is_coroutine=False)(1)
    assert not watch.never_begins()


async def test_the_end_is_reported_whenever_an_interrupt_occurs():
    """J6.2, J4.5: before the body, in it, or on its way out: the body never begins, or its end is reported."""
    chosen = random.Random(7)
    threads = ThreadBodies(asyncio.get_running_loop())
    ends = {"never begun": 0, "reported": 0}
    for _ in range(ROUNDS):
        ended = Ended()
        watch = BodyWatch(ended)
        watched = watch.around(spin, is_coroutine=False)
        times = chosen.choice([0, 100, 10_000, 200_000])
        running = asyncio.create_task(threads.run(lambda body=watched, count=times: body(count)))  # type: ignore[misc]
        await asyncio.sleep(chosen.choice([0, 0, 0.0001, 0.001]))
        running.cancel()
        await asyncio.wait([running])
        if watch.never_begins():
            ends["never begun"] += 1
        else:
            await asyncio.wait_for(ended.reported.wait(), 90)
            ends["reported"] += 1
    threads.close()
    assert min(ends.values()) > 0, f"both cases must have happened: {ends}"
