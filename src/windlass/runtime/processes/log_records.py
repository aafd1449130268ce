"""Log records carried from a job's process to the worker, which handles them like its own.

The job's process never uses a handler, whatever the program configures while it is imported: the worker has the same
handlers, and a line must not be written twice. The worker's levels apply.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from windlass.runtime import logcontext
from windlass.runtime.logcontext import OUTSIDE, LogFields
from windlass.runtime.processes.messages import LogLine, fit, plain

LONGEST_TRACE = 90_000
ROOT = ""
"""Stands for the root logger among the levels."""
DISABLED = "\0disabled"
"""Stands for `logging.disable`."""

_formatter = logging.Formatter()


# ---------------------------------------------------------------------- the worker's side


def levels() -> dict[str, int]:
    """Return the levels of the loggers of this process that have one."""
    manager = logging.root.manager
    loggers = {name: log for name, log in list(manager.loggerDict.items()) if isinstance(log, logging.Logger)}
    found = {name: log.level for name, log in loggers.items() if log.level != logging.NOTSET}
    return {ROOT: logging.root.level, DISABLED: manager.disable, **found}


def handle(line: LogLine) -> None:
    """Pass a record of a job's process to the logger of its name."""
    logcontext.emit(logging.makeLogRecord(line.record))


# ---------------------------------------------------------------------- the job's side


def take_levels(given: dict[str, int]) -> None:
    """Apply the worker's levels, which override those set here."""
    manager = logging.root.manager
    manager.disable = given.get(DISABLED, 0)
    _set_level(logging.root, given.get(ROOT, logging.WARNING))
    for name in given.keys() - manager.loggerDict.keys() - {ROOT, DISABLED}:
        logging.getLogger(name)
    for name, log in list(manager.loggerDict.items()):
        if isinstance(log, logging.Logger):
            _set_level(log, given.get(name, logging.NOTSET))
            log.disabled = False


def _set_level(log: logging.Logger, level: int) -> None:
    if log.level != level:
        log.setLevel(level)


def forward_records(send: Callable[[LogLine], None], fields: Callable[[], LogFields]) -> None:
    """Send every record from now on instead of handling it here.

    `fields` returns the running job's fields: threads that a body starts without a copy of its context have none.
    """

    def forward(logger: logging.Logger, record: logging.LogRecord) -> None:
        del logger
        send(line_of(record, fields()))

    # Not with a handler on the root logger: configurations replace handlers, and loggers need not propagate.
    logging.Logger.callHandlers = forward  # type: ignore[method-assign, assignment]


def line_of(record: logging.LogRecord, running: LogFields) -> LogLine:
    """Return the attributes of a record, `extra` included, as JSON values."""
    attributes = dict(record.__dict__)
    if attributes.get("job_id", OUTSIDE.job_id) == OUTSIDE.job_id:
        attributes.update(running._asdict())
    attributes["msg"] = _printed(record.getMessage)
    attributes["args"] = ()
    if (trace := record.exc_info) and not record.exc_text:
        attributes["exc_text"] = _printed(lambda: _formatter.formatException(trace)[-LONGEST_TRACE:])
    attributes["exc_info"] = None
    return LogLine({fit(name): _value(value) for name, value in attributes.items()})


def _value(value: Any) -> Any:
    if plain(value):
        return value
    return [] if type(value) is tuple and not value else _printed(lambda: str(value))


def _printed(render: Callable[[], str]) -> str:
    try:
        return fit(render())
    except Exception as error:  # noqa: BLE001 - a value that cannot be printed must not lose the whole line
        return f"<not printable: {type(error).__name__}>"
