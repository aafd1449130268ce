"""Which job a log line belongs to: fields in a context variable, put on every `LogRecord` whatever formatter is used.

Context variables follow coroutines by themselves, and threads when their context is copied
(`contextvars.copy_context().run`, `asyncio.to_thread`).
"""

import logging
import threading
from contextvars import ContextVar, Token
from typing import Any, NamedTuple, Protocol, Self


class LogFields(NamedTuple):
    """What a log record says about the job it was made in; all "-" outside of jobs."""

    job_id: object = "-"
    node_id: str = "-"
    attempt: int | str = "-"


OUTSIDE = LogFields()
_current: ContextVar[LogFields] = ContextVar("windlass_log_fields", default=OUTSIDE)


def current() -> LogFields:
    """Give the fields of the job this code runs in."""
    return _current.get()


class Binding:
    """Fields that hold until `reset`, or until the end of a `with` block."""

    __slots__ = ("_token",)

    def __init__(self, token: Token[LogFields]) -> None:
        self._token = token

    def reset(self) -> None:
        """Go back to what held before; in the context that bound, and once."""
        _current.reset(self._token)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.reset()


def bind(job_id: object, node_id: str, attempt: int) -> Binding:
    """Make every log record of this context carry these fields, from this call on.

    Example: `with bind(job.id, node.id, 1): log.info("charged")`
    """
    return Binding(_current.set(LogFields(job_id, node_id, attempt)))


class _RecordFields(dict[str, Any]):
    """The attributes of a record; our fields can be read but do not count as taken.

    `Logger.makeRecord` refuses an `extra` whose key the record already has. Without this, a user's own
    `log.info(…, extra={"attempt": 2})` would start to raise as soon as Windlass is imported.
    """

    def __contains__(self, key: object) -> bool:
        return key not in LogFields._fields and super().__contains__(key)


class _RecordFactory(Protocol):
    def __call__(self, *args: Any, **kwargs: Any) -> logging.LogRecord: ...


class _WithJobFields:
    """A record factory on top of the one the user had."""

    def __init__(self, previous: _RecordFactory) -> None:
        self.previous = previous
        self.active = True

    def __call__(self, *args: Any, **kwargs: Any) -> logging.LogRecord:
        record = self.previous(*args, **kwargs)
        if self.active:
            attributes, fields = record.__dict__, _current.get()
            if fields is OUTSIDE:
                attributes = {**OUTSIDE._asdict(), **attributes}
            else:
                attributes.update(fields._asdict(), job_id=str(fields.job_id))
            record.__dict__ = _RecordFields(attributes)
        return record


_install_lock = threading.Lock()
_installed: _WithJobFields | None = None
_users = 0


def install() -> None:
    """Put the fields on every log record of this process. Each call needs its own `uninstall`; only the first acts."""
    global _installed, _users  # noqa: PLW0603 - the record factory is one per process too
    with _install_lock:
        _users += 1
        if _installed is None:
            _installed = _WithJobFields(logging.getLogRecordFactory())
            logging.setLogRecordFactory(_installed)


def uninstall() -> None:
    """Take the fields away again, once everybody who called `install` has called this."""
    global _installed, _users  # noqa: PLW0603 - see install
    with _install_lock:
        _users = max(_users - 1, 0)
        if _users or _installed is None:
            return
        _installed.active = False  # somebody may have built a factory on top of ours, which then stays in the chain
        if logging.getLogRecordFactory() is _installed:
            logging.setLogRecordFactory(_installed.previous)
        _installed = None
