"""Structured log output: one JSON object per line, with the job it belongs to.

```python handler = logging.StreamHandler() handler.setFormatter(JsonFormatter())
logging.basicConfig(level=logging.INFO, handlers=[handler]) ```
"""

import json
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from windlass.runtime.logcontext import OUTSIDE, LogFields

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"} | set(LogFields._fields)


class JsonFormatter(logging.Formatter):
    """Writes `time, level, logger, message`, inside jobs `job_id, node_id, attempt`, then the fields of `extra`.

    It removes nothing from a line by itself: pass `DefaultErrorSanitizer().sanitize_text` as `sanitize` to redact
    messages and tracebacks too. Errors of jobs are sanitised already.
    """

    def __init__(self, sanitize: Callable[[str], str] | None = None) -> None:
        super().__init__()
        self._sanitize = sanitize or str

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        attributes = record.__dict__
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": self._sanitize(record.getMessage()),
        }
        for name, outside in OUTSIDE._asdict().items():
            if attributes.get(name, outside) != outside:
                line[name] = attributes[name]
        line.update((key, value) for key, value in attributes.items() if key not in _STANDARD and key not in line)
        if record.exc_info:
            line["traceback"] = self._sanitize(self.formatException(record.exc_info))
        elif record.exc_text:
            line["traceback"] = self._sanitize(record.exc_text)
        if record.stack_info:
            line["stack"] = self._sanitize(self.formatStack(record.stack_info))
        return json.dumps(line, default=_text, skipkeys=True)


def _text(value: object) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - a value that cannot be printed must not lose the whole line
        return f"<{type(value).__name__}>"
