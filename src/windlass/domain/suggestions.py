"""Suggestions for an unknown name: the most similar known one."""

import difflib
from collections.abc import Iterable


def did_you_mean(given: object, known: Iterable[str]) -> str:
    """Return the end of an error message; empty if no known name is similar.

    Example: `did_you_mean("stats", ["status", "queue"]) == "; did you mean 'status'?"`
    """
    close = closest(given, known)
    return f"; did you mean {close!r}?" if close else ""


def closest(given: object, known: Iterable[str]) -> str | None:
    """Return the known name that is spelled most similarly, if any is close."""
    return next(iter(difflib.get_close_matches(str(given), sorted(known), n=1)), None)
