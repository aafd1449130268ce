"""Statements in the form of a driver, and results in the form that plans expect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID


class Command(NamedTuple):
    """A statement in the driver's form. If `params` is None, the text is used as it is."""

    text: str
    params: Mapping[str, Any] | None = None
    kind: str = "count"


def answer(kind: str, rows: Sequence[Sequence[Any]], count: int) -> Any:
    """Return the result for a plan: rows of plain values, independent of the connection's settings."""
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
