"""Paths of items: their position in an expansion, as a text that sorts in the order of the expansion.

Each number is written as its length in one hexadecimal digit, then its digits: item 17 of item 3 is `13.217`. Paths
therefore sort as plain text, and the children of an item lie between it and the next one.
"""

from __future__ import annotations

from typing import Final

FIRST: Final = ""
"""Sorts before every path."""
_MOST_DIGITS: Final = 15


def child(parent: str, index: int) -> str:
    """Return the path of an item's child; the parent of items of a first expansion is an empty text."""
    digits = str(index)
    if index < 0 or len(digits) > _MOST_DIGITS:
        raise ValueError(f"the index of an item must be from 0 to 10^{_MOST_DIGITS} - 1, got {index}")
    number = f"{len(digits):x}{digits}"
    return f"{parent}.{number}" if parent else number


def behind(path: str) -> str:
    """Return the first path that is neither the item nor one of its descendants."""
    parent, _, last = path.rpartition(".")
    return child(parent, int(last[1:]) + 1)


def right_behind(path: str) -> str:
    """Return a text that sorts behind a path, and before its descendants and all others that follow it."""
    return f"{path} "


def readable(path: str) -> str:
    """Return the numbers of a path: `13.217` is `3.17`."""
    return ".".join(part[1:] for part in path.split(".")) if path else ""


def parse_readable(text: str) -> str:
    """Return the path of a readable one; raise ValueError for anything else."""
    path = FIRST
    for part in text.split("."):
        path = child(path, int(part))
    return path
