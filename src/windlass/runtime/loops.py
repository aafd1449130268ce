"""The event loops of workers: made, kept running when a body tears at them, and closed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from windlass import loggers

logger = loggers.logger("windlass.worker")

T = TypeVar("T")

CLOSE_TIMEOUT = 1.0
"""How long tasks that are left when a loop closes may take to end."""


def new_loop() -> asyncio.AbstractEventLoop:
    """A loop for a process that is a worker: uvloop's where it is installed."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def outlive_exits(run: Callable[[], T], over: Callable[[], bool] = lambda: False) -> T:
    """Run a loop, and go on when asyncio lets a SystemExit or KeyboardInterrupt of some task through it.

    Such a task was started by a job's body, which meets the same error where it awaits the task: that job fails by it.
    """
    while True:
        try:
            return run()
        except (SystemExit, KeyboardInterrupt) as error:
            if over():
                raise
            logger.error("a task that a job had started raised %s; the worker goes on", type(error).__name__)


def close(loop: asyncio.AbstractEventLoop) -> None:
    """Close a loop as `asyncio.run` does, but wait for nobody for ever: a body may ignore being cancelled."""
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        _, stubborn = loop.run_until_complete(asyncio.wait(tasks, timeout=CLOSE_TIMEOUT))
        if stubborn:
            logger.error("%d tasks ignore being cancelled and are left behind", len(stubborn))
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()


async def first(*events: asyncio.Event) -> None:
    """Wait until one of these is set."""
    waiting = {asyncio.ensure_future(event.wait()) for event in events}
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for waiter in waiting:
        waiter.cancel()
