"""The jobs that are measured, and the application around them."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from windlass import Settings, Windlass
from windlass.domain.clock import monotonic

PAYLOAD: Final = "x" * 196
"""With the JSON around it 200 bytes of arguments."""
NAP: Final = 0.005


starts: list[tuple[int, float]] = []
"""Number and start of every stamped job of this process."""
_bodies = itertools.count()


def bodies() -> int:
    """How many bodies ran in this process, counted exactly, also from threads; ask once, at the end."""
    return next(_bodies)


async def noop(payload: str) -> None:
    """Do nothing, on the loop."""
    next(_bodies)


def nap(payload: str) -> None:
    """Hold a thread for 5 ms."""
    next(_bodies)
    time.sleep(NAP)  # noqa: TID251 - to sleep is the workload


async def member(payload: str) -> str:
    """Return 20 characters, on the loop."""
    next(_bodies)
    return payload[:20]


async def join(results: list[str]) -> int:
    """Return how many results it got."""
    next(_bodies)
    return len(results)


async def stamp(number: int) -> None:
    """Note when it started."""
    starts.append((number, monotonic()))
    next(_bodies)


class BenchApp(NamedTuple):
    """An application with default settings, whatever files and variables say here, and its jobs."""

    app: Windlass
    noop: Any
    nap: Any
    stamp: Any
    member: Any
    join: Any


def open_app(url: str) -> BenchApp:
    """The application on a store."""
    app = Windlass(url, settings=Settings())
    return BenchApp(app, *(app.job(function) for function in (noop, nap, stamp, member, join)))


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The event loop that workers use: uvloop, where it is installed."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
