"""The items of a stage as iterables, read page by page."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from windlass.domain.item_paths import FIRST
from windlass.pipelines.item_values import Values
from windlass.pipelines.node_runtime import NodeRuntime
from windlass.stores.plans import items


class ItemStream:
    """The values of a stage's items, in the order of the expansion; one page is in memory at a time."""

    def __init__(self, runtime: NodeRuntime, values: Values, execution: str, stage: int, page: int) -> None:
        self._runtime = runtime
        self._values = values
        self._execution = execution
        self._stage = stage
        self._page = page

    def __iter__(self) -> Iterator[Any]:
        after = FIRST
        while True:
            page = self._runtime.read_blocking(items.done, self._execution, self._stage, after, self._page)
            for item in page:
                yield self._values.decode(item.type, item.value)
            if len(page) < self._page:
                return
            after = page[-1].path

    async def __aiter__(self) -> AsyncIterator[Any]:
        after = FIRST
        while True:
            page = await self._runtime.read(items.done, self._execution, self._stage, after, self._page)
            for item in page:
                yield self._values.decode(item.type, item.value)
            if len(page) < self._page:
                return
            after = page[-1].path


class SingleStream:
    """One value as a stream."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __iter__(self) -> Iterator[Any]:
        yield self._value

    async def __aiter__(self) -> AsyncIterator[Any]:
        yield self._value


Stream = ItemStream | SingleStream
