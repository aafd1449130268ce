"""One item that runs through steps: its stored state, and its current value."""

from __future__ import annotations

from typing import Any

from windlass.domain.execution_items import ItemRow, ItemStatus, ItemWrite

NO_ERROR = (None, None)


class ClaimedItem:
    """An item that a claim runs. It makes the writes of itself; `written` is called after the commit of each."""

    __slots__ = ("attempt", "cursor", "emitted", "last_hash", "number", "path", "text", "value", "version")

    def __init__(self, row: ItemRow, value: Any) -> None:
        self.path = row.path
        self.cursor = row.cursor
        self.version = row.version
        self.attempt = row.attempt
        self.emitted = row.emitted
        self.last_hash = row.last_hash
        self.number = row.type
        self.text = row.value
        self.value = value

    @property
    def stored(self) -> tuple[int, str] | None:
        """Its value as it is stored: the number of its type, and its text."""
        return None if self.text is None else (self.number, self.text)

    def write(
        self,
        execution_id: str,
        stage: int,
        status: ItemStatus,
        described: tuple[str | None, str | None] = NO_ERROR,
        delay_us: int | None = None,
    ) -> ItemWrite:
        """Return the write of its present state; `described` is the class and the text of its error."""
        return ItemWrite(
            *(execution_id, stage, self.path, self.version, int(status), self.cursor, self.attempt, self.emitted),
            *(self.last_hash, delay_us, self.number, self.text, *described),
        )

    def written(self) -> None:
        """Continue with the version that the last write has set."""
        self.version += 1
