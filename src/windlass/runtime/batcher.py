"""Batches calls of the tasks of one event loop: what comes while a batch is under way goes into the next one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Batcher(Generic[T, R]):
    """Answers calls in batches. A single call is not delayed; under load batches grow by themselves."""

    def __init__(self, run: Callable[[Sequence[T]], Awaitable[Sequence[R]]], most: int) -> None:
        self._run = run
        """Answers a batch, in order; what it raises is raised by every call of the batch."""
        self._most = most
        self._waiting: list[tuple[T, asyncio.Future[R]]] = []
        self._task: asyncio.Task[None] | None = None

    async def call(self, given: T) -> R:
        """Add a call to the next batch, and return its answer."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[R] = loop.create_future()
        self._waiting.append((given, answer))
        if self._task is None:
            self._task = loop.create_task(self._work())
        return await answer

    async def _work(self) -> None:
        try:
            while self._waiting:
                await asyncio.sleep(0)  # includes all callers that are ready in this turn of the loop
                batch, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
                await self._answer(batch)
        finally:
            self._task = None

    async def _answer(self, batch: Sequence[tuple[T, asyncio.Future[R]]]) -> None:
        try:
            answers = await self._run([given for given, _ in batch])
        except BaseException as error:
            for _, future in batch:
                if not future.done():
                    future.set_exception(error) if isinstance(error, Exception) else future.cancel()
            if not isinstance(error, Exception):
                raise
            return
        for (_, future), answer in zip(batch, answers, strict=True):
            if not future.done():
                future.set_result(answer)
