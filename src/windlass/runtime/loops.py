"""The event loops of workers: created, protected against exits raised by bodies, and closed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from windlass import loggers

logger = loggers.logger("windlass.worker")

T = TypeVar("T")

CLOSE_TIMEOUT = 1.0
"""Seconds that remaining tasks may take to end when a loop closes."""


def new_loop() -> asyncio.AbstractEventLoop:
    """Return a loop for a worker process: uvloop's where it is installed."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def outlive_exits(run: Callable[[], T], over: Callable[[], bool] = lambda: False) -> T:
    """Run a loop, and resume it when asyncio lets a task's SystemExit or KeyboardInterrupt through.

    Such a task was started by a job's body, which gets the same error where it awaits the task: the job fails with it.
    """
    while True:
        try:
            return run()
        except (SystemExit, KeyboardInterrupt) as error:
            if over():
                raise
            logger.error("a task started by a job raised %s; the worker continues", type(error).__name__)


def close(loop: asyncio.AbstractEventLoop) -> None:
    """Close a loop as `asyncio.run` does, but with a time limit: a body may ignore being cancelled."""
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        _, stubborn = loop.run_until_complete(asyncio.wait(tasks, timeout=CLOSE_TIMEOUT))
        if stubborn:
            logger.error("%d tasks ignored their cancellation and were abandoned", len(stubborn))
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()


async def first(*events: asyncio.Event) -> None:
    """Wait until one of these is set."""
    waiting = {asyncio.ensure_future(event.wait()) for event in events}
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for waiter in waiting:
        waiter.cancel()
