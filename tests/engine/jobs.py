"""Bodies of jobs for tests. Module-level, because a local function has no name to store."""

import asyncio
import logging
import threading
from typing import Any

from tests.engine.apps import LONG, Gate
from windlass import JobContext

GATES: dict[str, Gate] = {}
"""Gates of the running test, by name."""
SEEN: list[Any] = []
"""What bodies noted down, in order."""

log = logging.getLogger("shop")


def add(a: int, b: int) -> int:
    return a + b


async def aadd(a: int, b: int) -> int:
    return a + b


def note(value: str) -> str:
    SEEN.append(value)
    return value


async def anote(value: str) -> str:
    SEEN.append(value)
    return value


def hold(name: str) -> str:
    """Enter, and return once the gate is open."""
    gate = GATES[name]
    gate.entered.set()
    assert gate.opened.wait(LONG)
    return "let go"


async def ahold(name: str) -> str:
    """The same on the loop."""
    gate = GATES[name]
    gate.entered.set()
    while not gate.opened.is_set():
        await asyncio.sleep(0.01)
    return "let go"


def thread_name() -> str:
    return threading.current_thread().name


async def athread_name() -> str:
    return threading.current_thread().name


def fail(message: str) -> None:
    raise ValueError(message)


async def afail(message: str) -> None:
    raise ValueError(message)


def fail_at_first(message: str) -> int:
    """Fail the first attempt, succeed in the second; both note what they know of themselves."""
    context = JobContext.current()
    SEEN.append((context.attempt, context.effect_key, context.fence))
    if context.attempt == 1:
        raise ValueError(message)
    return context.attempt
