"""Bodies of jobs for tests. Module-level, because a local function has no name to store."""

import asyncio
import logging
import os
import threading
from typing import Any

from tests.engine.apps import LONG, Gate
from windlass import JobContext

GATES: dict[str, Gate] = {}
"""Gates of the running test, by name."""
seen: list[Any] = []
"""What bodies noted down, in order."""

log = logging.getLogger("shop")


def add(a: int, b: int) -> int:
    return a + b


async def aadd(a: int, b: int) -> int:
    return a + b


def note(value: str) -> str:
    seen.append(value)
    return value


async def anote(value: str) -> str:
    seen.append(value)
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
    while not gate.opened.is_set():  # noqa: ASYNC110 - the test opens it from another thread
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
    seen.append((context.attempt, context.effect_key, context.fence))
    if context.attempt == 1:
        raise ValueError(message)
    return context.attempt


def log_line(text: str) -> None:
    log.info(text)


async def alog_line(text: str) -> None:
    """Log on the loop, and from a thread that the body itself uses."""
    log.info(text)
    await asyncio.to_thread(log.info, f"{text} in a thread")


def describe_myself() -> dict[str, Any]:
    context = JobContext.current()
    context.log.info("described")
    context.check()
    return {
        "job_id": str(context.job_id),
        "attempt": context.attempt,
        "fence": context.fence,
        "effect_key": context.effect_key,
        "params": dict(context.params),
        "target": context.target,
        "queue": context.queue,
        "tags": list(context.tags),
        "correlation_id": context.correlation_id,
        "node": context.node,
        "cancelled": context.cancelled,
    }


async def adescribe_myself() -> dict[str, Any]:
    return describe_myself()


def snooze_until_third_claim(delay: float) -> list[int]:
    context = JobContext.current()
    seen.append((context.attempt, context.effect_key, context.fence))
    if len(seen) < 3:
        context.snooze(delay)
    return [attempt for attempt, _, _ in seen]


async def asnooze_once(delay: float) -> int:
    seen.append("run")
    if len(seen) == 1:
        JobContext.current().snooze(delay)
    return JobContext.current().attempt


def fail_then_hold(name: str) -> None:
    """Fail the first attempt, wait at the gate in the second."""
    if JobContext.current().attempt == 1:
        raise ValueError("not yet")
    hold(name)


def process_id() -> int:
    return os.getpid()
