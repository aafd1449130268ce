"""The jobs of a chaos run. Each is witnessed, and gives back the fence it held: whose result stands is thus seen."""

import asyncio
import os
import signal
import threading

from tests.chaos.witness import witnessed
from windlass import DoNotRetry, JobResult

LONG = 3600.0


async def quick(number: int) -> list[int]:
    with witnessed() as context:
        return [context.fence]


async def slow(number: int, seconds: float) -> list[int]:
    with witnessed() as context:
        await asyncio.sleep(seconds)
        return [context.fence]


def threaded(number: int, seconds: float) -> list[int]:
    with witnessed() as context:
        threading.Event().wait(seconds)
        return [context.fence]


async def flaky(number: int, failures: int) -> list[int]:
    """Fails a given number of times, then succeeds."""
    with witnessed() as context:
        if context.attempt <= failures:
            raise ConnectionError(f"attempt {context.attempt} of {failures} that fail")
        return [context.fence]


async def hopeless(number: int) -> None:
    with witnessed():
        raise ConnectionError("never works")


async def refusing(number: int) -> None:
    with witnessed():
        raise DoNotRetry("no use in trying again")


async def snoozing(number: int, times: int, seconds: float) -> list[int]:
    """Snoozes on its first claims (1, 3, …), also on those that follow a lost one."""
    with witnessed() as context:
        if context.fence < 2 * times:
            context.snooze(seconds)
        return [context.fence]


async def overtime(number: int) -> None:
    """Given a timeout that ends it."""
    with witnessed():
        await asyncio.sleep(LONG)


async def unwanted(number: int) -> list[int]:
    """Canceled by the driver, whether it runs yet or not; if that comes too late it has gone on long enough."""
    with witnessed() as context:
        await asyncio.sleep(2)
        return [context.fence]


def in_process(number: int) -> list[int]:
    with witnessed() as context:
        return [context.fence]


def overtime_in_process(number: int) -> None:
    """Killed at its timeout, and so cannot say that it ended."""
    with witnessed():
        threading.Event().wait(LONG)


def dying_in_process(number: int) -> list[int]:
    """Takes its own process down the first time."""
    with witnessed() as context:
        if context.fence == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return [context.fence]


async def limited(number: int, gate: str, seconds: float) -> list[int]:
    """Behind a gate, which it names."""
    with witnessed(gate) as context:
        await asyncio.sleep(seconds)
        return [context.fence]


async def behind_circuit(number: int) -> list[int]:
    """Its service fails at the first call of each job, so its circuit opens from time to time."""
    with witnessed() as context:
        if context.attempt == 1:
            raise ConnectionError("the service is down")
        return [context.fence]


async def followed(number: int) -> list[int]:
    with witnessed() as context:
        return [context.fence]


async def followed_failure(number: int) -> None:
    with witnessed():
        raise DoNotRetry("its callback follows")


async def callback(result: JobResult) -> list[int]:
    with witnessed() as context:
        return [context.fence]


ALL = (
    quick,
    slow,
    threaded,
    flaky,
    hopeless,
    refusing,
    snoozing,
    overtime,
    unwanted,
    in_process,
    overtime_in_process,
    dying_in_process,
    limited,
    behind_circuit,
    followed,
    followed_failure,
    callback,
)
