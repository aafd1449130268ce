"""Jobs whose first run continues until it is stopped, and whose second one returns."""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable

from tests.engine.apps import LONG
from windlass import JobContext, StopJob

entered: Counter[str] = Counter()
"""How often a body was entered, by its name."""
notified: list[str] = []
"""Bodies that learned that they are to end."""


def _enter(name: str) -> bool:
    """True the first time."""
    entered[name] += 1
    return entered[name] == 1


async def on_the_loop(name: str) -> str:
    if _enter(name):
        try:
            await asyncio.sleep(LONG)
        except asyncio.CancelledError:
            notified.append(name)
            raise
    return f"{name} again"


def checking(name: str) -> str:
    """Asks whether it should go on."""
    return _until_told(name, lambda context: context.check())


def reporting(name: str) -> str:
    """Says how far it is."""
    return _until_told(name, lambda context: context.progress(1))


def _until_told(name: str, ask: Callable[[JobContext], None]) -> str:
    if _enter(name):
        pause = threading.Event()
        for _ in range(int(LONG / 0.01)):
            try:
                ask(JobContext.current())
            except StopJob as error:
                notified.append(type(error).__name__)
                raise
            pause.wait(0.01)
    return f"{name} again"


def on_a_thread(name: str) -> str:
    if _enter(name):
        context = JobContext.current()
        pause = threading.Event()
        for _ in range(int(LONG / 0.01)):
            if context.canceled:
                notified.append(name)
                break
            pause.wait(0.01)
        return "too late"
    return f"{name} again"
