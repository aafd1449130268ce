"""Log output of a command, for programs that have not configured logging themselves."""

from __future__ import annotations

import logging
from typing import Final

from windlass.domain.control_characters import indented
from windlass.observability.logs import JsonFormatter
from windlass.runtime.logcontext import OUTSIDE

LEVELS: Final = ("debug", "info", "warning", "error")
FORMATS: Final = ("text", "json")


class PlainFormatter(logging.Formatter):
    """A line for people; inside a job it ends with the job it belongs to."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(name)s: %(message)s", datefmt="%H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; further lines, e.g. of a traceback, are indented, so that no message can forge a line."""
        return indented(super().format(record))

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the standard library's name
        """Return the line, with the job it belongs to unless the message contains it."""
        line = super().formatMessage(record)
        job = getattr(record, "job_id", OUTSIDE.job_id)
        if job == OUTSIDE.job_id or job in record.message:
            return line
        return f"{line}  [job {job}, attempt {getattr(record, 'attempt', '-')}]"


def set_up(level: str, form: str) -> None:
    """Write log lines to standard error, unless the application has its own handlers."""
    root = logging.getLogger()
    if root.handlers:
        return
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if form == "json" else PlainFormatter())
    root.addHandler(handler)
    root.setLevel(level.upper())
