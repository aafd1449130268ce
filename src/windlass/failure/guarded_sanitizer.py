"""The sanitizer of an application: the user's own, if there is one, with the default behind it.

Whatever a user's sanitizer does, an error is stored, nothing that it was to take out comes through another way, and
what is stored can be stored.
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
    """Cleans errors, tracebacks and other texts; raises nothing."""

    def __init__(self, given: ErrorSanitizer | None, default: DefaultErrorSanitizer, longest: int) -> None:
        self._given = given
        own = getattr(given, "sanitize_text", None)
        self._own_text: Callable[[str], object] | None = own if callable(own) else None
        self._default = default
        self._longest = longest
        self._said: set[str] = set()

    def sanitize(self, error: BaseException) -> str:
        """An error as it may be stored, logged and published."""
        given = self._given
        if given is None:
            return self._default.sanitize(error)
        text = self._asked(lambda: given.sanitize(error), "sanitize")
        return self._default.sanitize(error) if text is None else text[: self._longest] or class_name(error)

    def sanitize_text(self, text: str) -> str:
        """A text that is no error: a log line that is kept, a progress message."""
        own = self._own_text
        cleaned = None if own is None else self._asked(lambda: own(text), "sanitize_text")
        return self._default.sanitize_text(text) if cleaned is None else cleaned

    def traceback_tail(self, error: BaseException, limit: int = 4000) -> str:
        """The end of an error's traceback."""
        if self._given is None:
            return self._default.traceback_tail(error, limit)
        text = traceback_of(error)
        if text is not None and self._own_text is not None:
            tail = redacted_tail(text, self.sanitize_text, limit)
            return self.sanitize(error)[-limit:] if tail is None else tail
        frames = "" if text is None else self.printed_traceback(text, limit)
        return last_lines(f"{frames}\n{self.sanitize(error)}".lstrip("\n"), limit)

    def printed_traceback(self, text: str, limit: int) -> str:
        """The end of a traceback of which nothing but its text is left.

        Where a sanitizer of errors alone was given, it keeps its frames only: its messages are those of errors, which
        that sanitizer has not seen.
        """
        if self._given is not None and self._own_text is None:
            text = "\n".join(_frames(text))
        return redacted_tail(text, self.sanitize_text, limit) or ""

    def _asked(self, question: Callable[[], object], name: str) -> str | None:
        """What the user's sanitizer says; None if it raises or gives no text, which is logged once per kind."""
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
        if trouble not in self._said:
            self._said.add(trouble)
            logger.error("the error sanitizer is broken: %s; the default is used in its place", trouble)


def _frames(text: str) -> Iterator[str]:
    """The lines of a printed traceback that say where; not those that say what."""
    inside = False
    for line in text.splitlines():
        inside = _FRAME.fullmatch(line) is not None or (inside and _SOURCE.fullmatch(line) is not None)
        if inside:
            yield line
