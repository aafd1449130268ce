"""Suggestions for a name that is not known: the known one that is spelled most like it."""

import difflib
from collections.abc import Iterable


def did_you_mean(given: object, known: Iterable[str]) -> str:
    """Give the end of an error message, or nothing where no known name is close.

    Example: `did_you_mean("stats", ["status", "queue"]) == "; did you mean 'status'?"`
    """
    close = closest(given, known)
    return f"; did you mean {close!r}?" if close else ""


def closest(given: object, known: Iterable[str]) -> str | None:
    """Give the known name that is spelled most like the one given, if any comes close."""
    return next(iter(difflib.get_close_matches(str(given), sorted(known), n=1)), None)
