"""Signals: silent until armed, in order, across threads and loops."""

import asyncio
import threading

import pytest

from windlass.runtime.signals import Signal


def test_nothing_is_kept_before_the_signal_is_armed():
    signal: Signal[int] = Signal()
    signal.send(1)
    signal.arm()
    signal.send(2)
    assert signal.wait_sync() == 2


def test_values_come_in_the_order_they_were_sent():
    signal: Signal[int] = Signal()
    signal.arm()
    for number in range(5):
        signal.send(number)
    assert [signal.wait_sync() for _ in range(5)] == [0, 1, 2, 3, 4]


def test_a_disarmed_signal_forgets():
    signal: Signal[int] = Signal()
    signal.arm()
    signal.send(1)
    signal.disarm()
    signal.send(2)
    with pytest.raises(TimeoutError, match=r"within 0\.01 s"):
        signal.wait_sync(0.01)


async def test_a_coroutine_is_woken_from_another_thread():
    signal: Signal[str] = Signal()
    waiting = asyncio.create_task(signal.wait())
    await asyncio.sleep(0)
    sender = threading.Thread(target=signal.send, args=("done",))
    sender.start()
    assert await waiting == "done"
    sender.join()


async def test_a_thread_is_woken_from_the_loop():
    signal: Signal[str] = Signal()
    signal.arm()
    waiting = asyncio.create_task(asyncio.to_thread(signal.wait_sync))
    await asyncio.sleep(0)
    signal.send("done")
    assert await waiting == "done"


async def test_a_wait_that_timed_out_takes_no_value_from_the_next_one():
    signal: Signal[int] = Signal()
    with pytest.raises(TimeoutError):
        await signal.wait(0.01)
    with pytest.raises(TimeoutError):
        signal.wait_sync(0.01)
    signal.send(7)
    assert await signal.wait() == 7


def test_many_senders_and_receivers_lose_and_double_nothing():
    signal: Signal[int] = Signal()
    signal.arm()
    received: list[int] = []

    def receive() -> None:
        received.extend(signal.wait_sync() for _ in range(100))

    def send(start: int) -> None:
        for number in range(start, start + 100):
            signal.send(number)

    threads = [threading.Thread(target=receive) for _ in range(4)]
    threads += [threading.Thread(target=send, args=(start,)) for start in (0, 100, 200, 300)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(received) == list(range(400))
