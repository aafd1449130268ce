"""Tracebacks as they are stored and logged: from the user's first frame on."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any, Final

LONGEST: Final = 100_000
"""Longest text in characters: far more than is ever stored, and short enough to search for secrets."""
CUT: Final = "…\n"
"""First line of a traceback whose beginning was cut off; the rest may begin inside a secret."""
MAX_FRAMES: Final = 20
LONGEST_MESSAGE: Final = 20_000

_PACKAGE: Final = f"{Path(__file__).parents[1]}/"
_USER_CODE: Final = tuple(_PACKAGE + folder for folder in ("cli/bench/", "cli/demo/", "testing/"))
"""Our packages that contain jobs; their frames are treated like a user's."""


def print_traceback(error: BaseException) -> str:
    """Return the text of an error with its causes, the last 20 frames of each, without our outer frames.

    May raise whatever the error's own methods raise.
    """
    printed = traceback.TracebackException.from_exception(error, limit=-MAX_FRAMES, compact=True)
    waiting, seen = [printed], set[int]()
    while waiting:
        link = waiting.pop()
        if id(link) in seen:
            continue
        seen.add(id(link))
        _drop_our_frames(link.stack)
        _shorten(link)
        waiting += [part for part in (link.__cause__, link.__context__, *(link.exceptions or ())) if part is not None]
    text = "".join(printed.format())
    return text if len(text) <= LONGEST else CUT + text[len(CUT) - LONGEST :]


def _drop_our_frames(stack: traceback.StackSummary) -> None:
    """Drop the frames before the user's first one. An error of Windlass itself keeps its frames."""
    first = next((number for number, frame in enumerate(stack) if not _is_ours(frame.filename)), 0)
    del stack[:first]


def _shorten(link: Any) -> None:
    """Cut a long message, at a space if there is one: half a secret may not be recognised.

    Python has no public name for the message that a `TracebackException` prints.
    """
    message = link._str
    if len(message) > LONGEST_MESSAGE:
        space = message.rfind(" ", 0, LONGEST_MESSAGE)
        link._str = message[: space if space > 0 else LONGEST_MESSAGE] + "…"


def _is_ours(filename: str) -> bool:
    return filename.startswith(_PACKAGE) and not filename.startswith(_USER_CODE)
