"""How deep JSON may be nested: so deep that everything here which follows it level by level still can."""

import re
from typing import Final

MOST_LEVELS: Final = 200
"""Levels of arguments, params and results. To read or write one takes up to 3 of the 1,000 frames that Python has."""
TOO_DEEP: Final = f"it is nested more than {MOST_LEVELS} levels deep; store the data elsewhere and pass its id"

_ONE_KIND: Final = bytes.maketrans(b"{}", b"[]")
_OTHERS: Final = bytes(set(range(256)) - set(b"[]{}"))
_TEXTS: Final = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)


def is_too_deep(data: bytes, levels: int = MOST_LEVELS) -> bool:
    """Whether a JSON text is nested more than so many levels deep.

    Each pass over its brackets takes away the innermost, so flat data is done at once. Brackets in texts may make it
    look deeper than it is: then it is looked at without its texts.
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
