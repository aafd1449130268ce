"""Stores the items of an expansion or a transformation in chunks, each with the position it has reached.

A body that is run again after a crash or a failure gives its items again: those that are stored are dropped, and the
last of them is compared, since an expansion that gives other items than before cannot be continued.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from windlass.domain.clock import monotonic
from windlass.domain.execution_items import ItemStatus, NewItem
from windlass.domain.item_paths import child
from windlass.pipelines.definition import Definition, PipelineStep
from windlass.pipelines.item_values import ValueNotStoredError, Values
from windlass.retry_signals import DoNotRetry

MOST_BYTES: Final = 1 << 20
"""Size of the values of a chunk from which it is stored."""
LONGEST_WAIT: Final = 0.5
"""Seconds after which a chunk is stored, so that items of a slow expansion start."""


class ChangedExpansionError(DoNotRetry):
    """An expansion that was run again gives other items than before."""


class Position(NamedTuple):
    """How far an expansion has come."""

    emitted: int
    last_hash: str | None


class ItemChunk(NamedTuple):
    """Items that are stored together."""

    items: list[NewItem]
    position: Position
    """After them."""


class Emitter:
    """Makes items of what a body gives, in chunks."""

    def __init__(
        self,
        definition: Definition,
        values: Values,
        step: PipelineStep,
        origin: tuple[str, int, str],
        reached: Position,
        status: Callable[[Any], tuple[ItemStatus, int]],
    ) -> None:
        self._definition = definition
        self._values = values
        self._step = step
        self._execution, self._stage, self._parent = origin
        self._stored = reached
        self._status = status
        """Returns the state in which an item is stored, and the step that it is given to next."""
        self._seen = 0
        self._items: list[NewItem] = []
        self._bytes = 0
        self._since = monotonic()
        self._last_hash = reached.last_hash

    @property
    def count(self) -> int:
        """Number of items so far, stored or not."""
        return self._seen

    def add(self, value: Any) -> bool:
        """Take the next item; return whether the chunk should be stored."""
        number, text = self._encode(value)
        index, self._seen = self._seen, self._seen + 1
        if index < self._stored.emitted:
            if index == self._stored.emitted - 1 and _hash(text) != self._stored.last_hash:
                raise ChangedExpansionError(_changed(self._step.name, index))
            return False
        status, cursor = self._status(value)
        path = child(self._parent, index)
        self._items.append(NewItem(self._execution, self._stage, path, status.value, cursor, number, text))
        self._bytes += len(text)
        self._last_hash = text
        full = len(self._items) >= self._step.options.buffer or self._bytes >= MOST_BYTES
        return full or monotonic() - self._since > LONGEST_WAIT

    def _encode(self, value: Any) -> tuple[int, str]:
        """Return the type and the stored form of an item."""
        try:
            number = self._definition.type_of(self._step.index, value)
            return number, self._values.encode(number, value)
        except Exception as error:
            raise ValueNotStoredError(f"an item of step {self._step.name!r} cannot be stored: {error}") from error

    def take(self) -> ItemChunk:
        """Return the items that are not stored yet, as a chunk."""
        items, self._items, self._bytes, self._since = self._items, [], 0, monotonic()
        emitted = max(self._seen, self._stored.emitted)
        last = _hash(self._last_hash) if items and self._last_hash is not None else self._stored.last_hash
        self._stored = Position(emitted, last)
        return ItemChunk(items, self._stored)

    def check_end(self) -> None:
        """Raise if the body gave fewer items than were stored before."""
        if self._seen < self._stored.emitted:
            raise ChangedExpansionError(_changed(self._step.name, self._seen))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:32]


def _changed(step: str, index: int) -> str:
    return (
        f"step {step!r} was run again, and from item {index} on it gives other items than before, which are stored; "
        "an expansion must depend on its input alone: store what it reads, or re-drive from this step"
    )
