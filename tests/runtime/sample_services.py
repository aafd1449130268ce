"""Services that tests run: one on the loop, one on a thread, both counting their ticks."""

import asyncio
from collections.abc import Callable

import pytest

from windlass.runtime.error_handling import ErrorHandling
from windlass.runtime.service import Service
from windlass.runtime.thread_service import ThreadService

FAST = ErrorHandling(first_delay=0.001, max_delay=0.004)


class OverlapCheck:
    """Counts ticks, and notices two at a time."""

    def __init__(self) -> None:
        self.ticks = 0
        self.inside = 0
        self.overlapped = False

    def __enter__(self) -> None:
        self.inside += 1
        self.overlapped |= self.inside > 1

    def __exit__(self, *_: object) -> None:
        self.inside -= 1
        self.ticks += 1


class LoopService(Service):
    """Does per tick what its `work` says: gives a pause or raises."""

    def __init__(self, work: Callable[[], float | None], errors: ErrorHandling = FAST) -> None:
        super().__init__("sample", errors)
        self.work = work
        self.check = OverlapCheck()

    async def tick(self) -> float | None:
        with self.check:
            await asyncio.sleep(0)
            return self.work()

    async def astop(self) -> None:
        await self.stop()


class OwnThreadService(ThreadService):
    """The same on a thread."""

    def __init__(self, work: Callable[[], float | None], errors: ErrorHandling = FAST) -> None:
        super().__init__("sample", errors)
        self.work = work
        self.check = OverlapCheck()

    def tick(self) -> float | None:
        with self.check:
            return self.work()


Kind = type[LoopService] | type[OwnThreadService]
both_kinds = pytest.mark.parametrize("kind", [LoopService, OwnThreadService])
