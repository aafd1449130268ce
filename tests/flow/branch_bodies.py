"""Predicates and jobs of branches under test: what was asked is noted."""

import asyncio
import threading
from collections.abc import Awaitable
from typing import Any

from tests.flow.flow_bodies import RAN, Jobs, Order
from windlass import JobResult, Windlass

ASKED: list[str] = []
"""Predicates that were called, with their arguments, in order."""
IN_PREDICATE = threading.Event()
"""Set while `waits` is being called."""
GO_ON = threading.Event()
"""Lets `waits` end."""


def is_small(number: int) -> bool:
    ASKED.append(f"small {number}")
    return number < 10


def is_large(number: int) -> bool:
    ASKED.append(f"large {number}")
    return number >= 10


async def is_even(number: int) -> bool:
    await asyncio.sleep(0)
    ASKED.append(f"even {number}")
    return number % 2 == 0


def has_milk(order: Order) -> bool:
    return type(order) is Order and "milk" in order.lines


def has_failed(result: JobResult) -> bool:
    ASKED.append(f"failed {result.target.rpartition(':')[2]} {result.error_class}")
    return result.failed


def always(result: JobResult) -> bool:
    ASKED.append(f"always {'succeeded' if result.succeeded else result.reason}")
    return True


def never(_: Any) -> bool:
    ASKED.append("never")
    return False


def yes(_: Any) -> bool:
    return True


def raises(_: Any) -> bool:
    raise ValueError("password=hunter2 is wrong")


def exits(_: Any) -> bool:
    raise SystemExit(3)


async def exits_on_the_loop(_: Any) -> bool:
    raise SystemExit(3)


async def hangs(_: Any) -> bool:
    await asyncio.Event().wait()
    return True


def waits(_: Any) -> bool:
    IN_PREDICATE.set()
    assert GO_ON.wait(90)
    return True


def no_later(value: Any) -> Awaitable[bool]:
    return _no(value)


async def _no(_: Any) -> bool:
    return False


class Truth:
    """A value whose truth is found out by code, as that of a query is."""

    def __bool__(self) -> bool:
        ASKED.append(f"truth {'on the loop' if is_on_the_loop() else 'on a thread'}")
        return True


def is_on_the_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def says_truth(_: Any) -> Any:
    return Truth()


def raises_lines(_: Any) -> bool:
    raise ValueError("one\nERROR two\x1b[31m")


def says_no_late(_: Any) -> bool:
    threading.Event().wait(0.3)
    return False


def says_yes_late(_: Any) -> bool:
    threading.Event().wait(0.3)
    return True


def takes_two(one: int, two: int) -> bool:
    return one < two


def note(name: str, value: Any = None) -> str:
    """Run, and say with what."""
    RAN.append(name if value is None else f"{name} {value}")
    return name


async def hangs_as_job(name: str) -> None:
    RAN.append(name)
    await asyncio.Event().wait()


def note_outcome(name: str, result: JobResult) -> str:
    RAN.append(f"{name} {'succeeded' if result.succeeded else result.error_class}")
    return name


class BranchJobs(Jobs):
    """The jobs of flows, and some for branches. This module declares jobs, so its predicates are admitted."""

    def __init__(self, app: Windlass) -> None:
        super().__init__(app)
        self.note = app.job(note)
        self.note_outcome = app.job(note_outcome)
