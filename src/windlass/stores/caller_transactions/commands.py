"""Statements as drivers take them, and their answers as plans are sent them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID


class Command(NamedTuple):
    """A statement in the driver's own form. Without parameters nothing in its text is replaced."""

    text: str
    params: Mapping[str, Any] | None = None
    kind: str = "count"


def answer(kind: str, rows: Sequence[Sequence[Any]], count: int) -> Any:
    """What a plan is sent: rows of plain values, whatever the connection's own settings make of them."""
    if kind == "count":
        return count
    plain = [tuple(_plain(value) for value in row) for row in rows]
    if kind == "rows":
        return plain
    return plain[0] if plain else None


def _plain(value: Any) -> Any:
    if isinstance(value, UUID):
        return str(value)
    return value.decode() if isinstance(value, bytes) else value  # sqlite3 with `text_factory = bytes`
