"""Messages between a worker and a process that runs its jobs: JSON, each preceded by its length.

Nothing is pickled: arguments and results travel as the text they are stored as, errors and log records as far as JSON
can describe them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from windlass.domain.job import Claim, Payload

LENGTH: Final = 4
"""Bytes in front of a message that hold its length."""
LONGEST: Final = 256 * 1024 * 1024
"""Longest message; a greater length means that something else has written into the channel."""


class Start(msgspec.Struct, tag=True):
    """The first message: what the process needs before its first job."""

    argv: list[str]
    home: str | None
    """Where the application is a global, as `module:name`; None if it is not global."""
    needs_app: bool
    """Whether arguments, results or names need the application to be understood, or it has middleware."""
    provides: bool
    """Whether objects were provided to the application, or it has its own resolver."""
    memory_bytes: int | None
    result_bytes: int
    levels: dict[str, int]


class Run(msgspec.Struct, tag=True):
    """Run a job."""

    claim: Claim
    payload: Payload
    node: str
    levels: dict[str, int]
    """Levels of the worker's loggers, so that records the worker would drop are not sent."""
    keeps_log: bool
    """Whether what `ctx.log` writes is kept, whatever its logger's level."""
    home: str | None = None
    """Where the function is defined, as `module:qualname`: a stored name need not contain a module."""


class Ready(msgspec.Struct, tag=True):
    """The process has started."""


class LogLine(msgspec.Struct, tag=True):
    """A log record: its attributes, and its message and traceback as text."""

    record: dict[str, Any]


class ContextCall(msgspec.Struct, tag=True):
    """A call of a context method that the worker carries out: `progress`."""

    method: str
    args: list[Any]


class Returned(msgspec.Struct, tag=True):
    """The body returned."""

    result: str | None
    warning: str | None


class Snoozed(msgspec.Struct, tag=True):
    """The body asked to be run later."""

    delay: float


class ErrorNote(msgspec.Struct):
    """A description of an exception; see `errors`."""

    kinds: list[str]
    """Its class and bases, nearest first, each as `module:qualname`."""
    text: str
    args: list[Any] | None = None
    """None if any is not a plain value."""
    state: dict[str, Any] = {}
    """The attributes that are plain values."""
    do_not_retry: str | None = None
    delay: float | None = None
    suppressed: bool = False
    cause: ErrorNote | None = None
    context: ErrorNote | None = None
    members: list[ErrorNote] = []


class Raised(msgspec.Struct, tag=True):
    """The body raised."""

    error: ErrorNote
    traceback: str
    deep: ErrorNote | None = None
    """The exception that forbids a retry, if it is deeper in the chain than what is described."""
    members: list[list[str]] = []
    """For a group: the classes of all its members with their bases, however many are described."""


Answer = Returned | Snoozed | Raised
ToProcess = Start | Run
FromProcess = Ready | LogLine | ContextCall | Returned | Snoozed | Raised

_encode: Final = msgspec.json.Encoder().encode
decode_to_process: Final = msgspec.json.Decoder(ToProcess).decode
decode_from_process: Final = msgspec.json.Decoder(FromProcess).decode


def framed(message: ToProcess | FromProcess) -> bytes:
    """Return a message with its length, as it goes through the channel."""
    text = _encode(message)
    return len(text).to_bytes(LENGTH, "big") + text


class Unframer:
    """Splits the bytes of the channel into messages."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the messages completed by these bytes; raise ValueError if they are not messages."""
        self._rest += data
        while len(self._rest) >= LENGTH:
            length = int.from_bytes(self._rest[:LENGTH], "big")
            if length > LONGEST:
                raise ValueError(f"a message of {length} bytes")
            if len(self._rest) < LENGTH + length:
                return
            text = bytes(self._rest[LENGTH : LENGTH + length])
            del self._rest[: LENGTH + length]
            yield text


def plain(value: Any) -> bool:
    """Return whether JSON carries a value unchanged."""
    kind = type(value)  # not isinstance: numbers of other libraries look like ours and are refused by the encoder
    if value is None or kind is bool:
        return True
    if kind is int:
        return bool(-(2**53) <= value <= 2**53)
    if kind is float:
        return bool(value - value == 0)  # neither infinite nor NaN
    return kind is str and fit(value) == value


def fit(text: str, longest: int = 100_000) -> str:
    """Return the text without lone surrogates, cut to `longest`, so that any JSON encoder accepts it."""
    return text[:longest].encode("utf-8", "replace").decode("utf-8")
