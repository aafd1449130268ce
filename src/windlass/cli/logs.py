"""Log lines of a command, for programs that have not set up logging themselves."""

from __future__ import annotations

import logging
from typing import Final

from windlass.observability.logs import JsonFormatter
from windlass.runtime.logcontext import OUTSIDE

LEVELS: Final = ("debug", "info", "warning", "error")
FORMATS: Final = ("text", "json")


class PlainFormatter(logging.Formatter):
    """A line for people; inside a job it ends with the job it belongs to."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(name)s: %(message)s", datefmt="%H:%M:%S")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the standard library's name
        """Give the line."""
        line = super().formatMessage(record)
        job = getattr(record, "job_id", OUTSIDE.job_id)
        return line if job == OUTSIDE.job_id else f"{line}  [job {job}, attempt {getattr(record, 'attempt', '-')}]"


def set_up(level: str, form: str) -> None:
    """Write log lines to standard error, unless the application has its own handlers."""
    root = logging.getLogger()
    if root.handlers:
        return
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if form == "json" else PlainFormatter())
    root.addHandler(handler)
    root.setLevel(level.upper())
