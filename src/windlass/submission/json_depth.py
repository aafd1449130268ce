"""The nesting limit of JSON, low enough for every recursive function that handles it."""

import re
from typing import Final

MAX_LEVELS: Final = 200
"""Limit for arguments, params and results. Each level takes up to 3 of the 1,000 frames that Python allows."""
TOO_DEEP: Final = f"it is nested more than {MAX_LEVELS} levels deep; store the data elsewhere and pass its id"

_ONE_KIND: Final = bytes.maketrans(b"{}", b"[]")
_OTHERS: Final = bytes(set(range(256)) - set(b"[]{}"))
_TEXTS: Final = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)


def is_too_deep(data: bytes, levels: int = MAX_LEVELS) -> bool:
    """Return whether a JSON text is nested deeper than `levels`.

    Each pass removes the innermost brackets, so flat data is done at once. Brackets in strings may make it look deeper
    than it is; it is then checked again without its strings.
    """
    return not _collapses(data, levels) and not _collapses(_TEXTS.sub(b"", data), levels)


def _collapses(data: bytes, levels: int) -> bool:
    brackets = data.translate(_ONE_KIND, _OTHERS)
    for _ in range(levels):
        if not brackets:
            return True
        inner = brackets.replace(b"[]", b"")
        if len(inner) == len(brackets):
            return False
        brackets = inner
    return not brackets
