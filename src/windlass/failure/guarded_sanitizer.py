"""The sanitizer of an application: the user's, if there is one, backed by the default.

Whatever a user's sanitizer does, an error is stored, nothing that it should remove gets through another way, and the
stored text is one that every database accepts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from windlass import loggers
from windlass.failure.sanitizer import (
    DefaultErrorSanitizer,
    class_name,
    last_lines,
    redacted_tail,
    storable,
    traceback_of,
)
from windlass.spi import ErrorSanitizer

logger = loggers.logger("windlass.sanitizer")

_FRAME: Final = re.compile(r"""[ |]*  File "[^"\n]+", line [0-9]+, in .*""")
_SOURCE: Final = re.compile(r"[ |]*    \S.*|[ |]*    [ ~^]*\^[ ~^]*")


class GuardedSanitizer:
    """Sanitizes errors, tracebacks and other texts; never raises."""

    def __init__(self, given: ErrorSanitizer | None, default: DefaultErrorSanitizer, longest: int) -> None:
        self._given = given
        own = getattr(given, "sanitize_text", None)
        self._own_text: Callable[[str], object] | None = own if callable(own) else None
        self._default = default
        self._longest = longest
        self._logged: set[str] = set()

    def sanitize(self, error: BaseException) -> str:
        """Return the text of an error that may be stored, logged and published."""
        given = self._given
        if given is None:
            return self._default.sanitize(error)
        text = self._call_users(lambda: given.sanitize(error), "sanitize")
        return self._default.sanitize(error) if text is None else text[: self._longest] or class_name(error)

    def sanitize_text(self, text: str) -> str:
        """Sanitize a text that is not an error: a log line that is kept, a progress message."""
        own = self._own_text
        cleaned = None if own is None else self._call_users(lambda: own(text), "sanitize_text")
        return self._default.sanitize_text(text) if cleaned is None else cleaned

    def traceback_tail(self, error: BaseException, limit: int = 4000) -> str:
        """Return the end of an error's traceback."""
        if self._given is None:
            return self._default.traceback_tail(error, limit)
        text = traceback_of(error)
        if text is not None and self._own_text is not None:
            tail = redacted_tail(text, self.sanitize_text, limit)
            return self.sanitize(error)[-limit:] if tail is None else tail
        frames = "" if text is None else self.printed_traceback(text, limit)
        return last_lines(f"{frames}\n{self.sanitize(error)}".lstrip("\n"), limit)

    def printed_traceback(self, text: str, limit: int) -> str:
        """Return the end of a traceback that exists only as text.

        If a user's sanitizer handles errors only, just the frames are kept: the messages in the text are those of
        errors, which that sanitizer has not seen.
        """
        if self._given is not None and self._own_text is None:
            text = "\n".join(_frames(text))
        return redacted_tail(text, self.sanitize_text, limit) or ""

    def _call_users(self, question: Callable[[], object], name: str) -> str | None:
        """Return the result of the user's sanitizer; None, logged once per kind, if it raises or returns no text."""
        try:
            answer = question()
        except Exception as broken:  # noqa: BLE001 - users' code
            self._complain(f"{name} raised {type(broken).__name__}")
            return None
        if not isinstance(answer, str):
            self._complain(f"{name} gave {type(answer).__name__}, not a text")
            return None
        return storable(answer)

    def _complain(self, trouble: str) -> None:
        if trouble not in self._logged:
            self._logged.add(trouble)
            logger.error("the error sanitizer is broken: %s; using the default instead", trouble)


def _frames(text: str) -> Iterator[str]:
    """Yield the lines of a printed traceback that give locations, not those with messages."""
    inside = False
    for line in text.splitlines():
        inside = _FRAME.fullmatch(line) is not None or (inside and _SOURCE.fullmatch(line) is not None)
        if inside:
            yield line
