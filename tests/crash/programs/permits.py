"""Bodies that use something of which there is not enough: they write down when they had it."""

import asyncio
import threading
from time import CLOCK_MONOTONIC, clock_gettime_ns

from tests.crash.programs.bodies import write_down


def _write_down(word: str, what: str) -> None:
    """All processes of a machine share this clock."""
    write_down(word, f"{what}@{clock_gettime_ns(CLOCK_MONOTONIC)}")


async def use(what: str, seconds: float) -> None:
    """Have it for a while."""
    _write_down("begins", what)
    await asyncio.sleep(seconds)
    _write_down("ends", what)


def use_in_thread(what: str, seconds: float) -> None:
    """The same on a thread."""
    _write_down("begins", what)
    threading.Event().wait(seconds)
    _write_down("ends", what)
