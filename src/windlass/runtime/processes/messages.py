"""What a worker and a process that runs jobs for it say to each other: JSON, one length and one text a message.

Nothing is pickled: arguments and results travel as the text they are stored as, errors and log records as what can be
said of them in JSON.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from windlass.domain.job import Claim, Payload

LENGTH: Final = 4
"""Bytes in front of a message that say how long it is."""
LONGEST: Final = 256 * 1024 * 1024
"""A length beyond this is none: somebody else has written into the channel."""


class Start(msgspec.Struct, tag=True):
    """The first message: what the process needs to know before its first job."""

    argv: list[str]
    home: str | None
    """Where the application is a global, as `module:name`; None if it is nowhere."""
    needs_app: bool
    """Whether arguments, results or names mean something only to the application, or it has middleware."""
    provides: bool
    """Whether objects were provided to the application, or it has a resolver of its own."""
    memory_bytes: int | None
    result_bytes: int
    levels: dict[str, int]


class Run(msgspec.Struct, tag=True):
    """Run a job."""

    claim: Claim
    payload: Payload
    node: str
    levels: dict[str, int]
    """Levels of the worker's loggers: a record that the worker would drop need not be sent."""
    keeps_log: bool
    """Whether what `ctx.log` writes is kept, whatever its logger's level."""
    home: str | None = None
    """Where the function stands, as `module:qualname`: a job may be stored under a name that tells no module."""


class Ready(msgspec.Struct, tag=True):
    """The process is up."""


class LogLine(msgspec.Struct, tag=True):
    """A log record: its attributes, message and traceback put into words."""

    record: dict[str, Any]


class ContextCall(msgspec.Struct, tag=True):
    """A method of the job's context was called that means something to the worker: `progress`."""

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
    """What can be said of an exception. See `errors`."""

    kinds: list[str]
    """Its class and the bases of it, nearest first, each as `module:qualname`."""
    text: str
    args: list[Any] | None = None
    """None if they are more than plain values."""
    state: dict[str, Any] = {}
    """Those of its attributes that are plain values."""
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
    """What forbids a retry, if it stands farther behind the error than is described."""
    members: list[list[str]] = []
    """Of a group: the classes of its members with their bases, all of them, however many are described."""


Answer = Returned | Snoozed | Raised
ToProcess = Start | Run
FromProcess = Ready | LogLine | ContextCall | Returned | Snoozed | Raised

_encode: Final = msgspec.json.Encoder().encode
decode_to_process: Final = msgspec.json.Decoder(ToProcess).decode
decode_from_process: Final = msgspec.json.Decoder(FromProcess).decode


def framed(message: ToProcess | FromProcess) -> bytes:
    """A message as it goes through the channel."""
    text = _encode(message)
    return len(text).to_bytes(LENGTH, "big") + text


class Unframer:
    """Cuts what has come through the channel into messages."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The messages that are whole with these bytes; `ValueError` if they are no messages."""
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
    """Whether a value goes through JSON as it is, without a second thought."""
    kind = type(value)  # not isinstance: numbers of other libraries look like ours and are refused by the encoder
    if value is None or kind is bool:
        return True
    if kind is int:
        return bool(-(2**53) <= value <= 2**53)
    if kind is float:
        return bool(value - value == 0)  # neither infinite nor NaN
    return kind is str and fit(value) == value


def fit(text: str, longest: int = 100_000) -> str:
    """A text that any JSON encoder takes: no lone surrogates; its first part, if it is very long."""
    return text[:longest].encode("utf-8", "replace").decode("utf-8")
