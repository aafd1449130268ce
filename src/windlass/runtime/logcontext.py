"""The running job's fields on every `LogRecord`, whatever formatter is used.

They come from the job's context, a context variable, which follows coroutines by itself, and threads when their context
is copied (`contextvars.copy_context().run`, `asyncio.to_thread`). Other threads remember which job started them until
its attempt has ended (`started_threads`).
"""

import logging
import threading
from typing import Any, NamedTuple, Protocol

from windlass.context import JobContext, current_context
from windlass.runtime.started_threads import ThreadMarks, starting_job


class LogFields(NamedTuple):
    """The fields of a log record that name its job; all "-" outside of jobs."""

    job_id: str = "-"
    node_id: str = "-"
    attempt: int | str = "-"


OUTSIDE = LogFields()


def current() -> LogFields:
    """Return the fields of the job this code runs in."""
    context = current_context.get()
    return OUTSIDE if context is None else fields_of(context)


def fields_of(context: JobContext) -> LogFields:
    """Return the fields of a job."""
    return LogFields(str(context.job_id), context.node, context.attempt)


def emit(record: logging.LogRecord) -> None:
    """Handle a record made elsewhere (in a job's process) like one made in this context."""
    context = current_context.get()
    if context is not None:
        context.keep(record)
    real = logging.getLogger(record.name)
    if real.isEnabledFor(record.levelno):
        real.handle(record)


class _RecordFields(dict[str, Any]):
    """The attributes of a record, in which our fields can be read but do not count as taken.

    `Logger.makeRecord` refuses an `extra` whose key the record already has. Without this, a user's `log.info(…,
    extra={"attempt": 2})` would start to raise as soon as Windlass is imported.
    """

    def __contains__(self, key: object) -> bool:
        return key not in LogFields._fields and super().__contains__(key)


class _RecordFactory(Protocol):
    def __call__(self, *args: Any, **kwargs: Any) -> logging.LogRecord: ...


class _WithJobFields:
    """A record factory that wraps the one that was set before."""

    def __init__(self, previous: _RecordFactory) -> None:
        self.previous = previous
        self.active = True

    def __call__(self, *args: Any, **kwargs: Any) -> logging.LogRecord:
        record = self.previous(*args, **kwargs)
        if self.active:
            attributes, context = record.__dict__, current_context.get() or starting_job()
            if context is None:
                attributes = {**OUTSIDE._asdict(), **attributes}
            else:
                attributes.update(fields_of(context)._asdict())
                if record.name:  # `logging.makeLogRecord` makes an empty one first
                    context.keep(record)
            record.__dict__ = _RecordFields(attributes)
        return record


_install_lock = threading.Lock()
_installed: _WithJobFields | None = None
_thread_marks: ThreadMarks | None = None
_users = 0


def install() -> None:
    """Put the fields on every log record of this process. Nested calls are counted; each needs an `uninstall`."""
    global _installed, _thread_marks, _users  # noqa: PLW0603 - the record factory is one per process too
    with _install_lock:
        _users += 1
        if _installed is None:
            _installed = _WithJobFields(logging.getLogRecordFactory())
            logging.setLogRecordFactory(_installed)
            _thread_marks = ThreadMarks()


def uninstall() -> None:
    """Remove the fields once `uninstall` was called as often as `install`."""
    global _installed, _thread_marks, _users  # noqa: PLW0603 - see install
    with _install_lock:
        _users = max(_users - 1, 0)
        if _users or _installed is None:
            return
        _installed.active = False  # another library may have wrapped our factory, which then stays in the chain
        if logging.getLogRecordFactory() is _installed:
            logging.setLogRecordFactory(_installed.previous)
        if _thread_marks is not None:
            _thread_marks.remove()
        _installed = _thread_marks = None
