"""JSON with types, for values without annotation.

A value that JSON cannot express is stored as `{"$windlass": <kind>, "value": ...}`, and so is a dict whose keys are not
all text or that contains the tag as a key; everything else is plain JSON.
"""

import binascii
from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from math import isfinite
from pathlib import Path, PurePath
from types import NoneType
from typing import Any, Final
from uuid import UUID

import msgspec

from windlass.domain.job_result import JobResult
from windlass.errors import JobFailedError, SerializationError
from windlass.submission.error_text import NOT_FINITE, remedy, short

TAG: Final = "$windlass"
TAG_IN_JSON: Final = b'"$windlass"'
PLAIN: Final = "plain"
DROPPED: Final = "result_dropped"
JOB_RESULT: Final = "job_result"
JOB_FAILED: Final = "job_failed"

NATIVE: Final[frozenset[type]] = frozenset({str, int, bool, NoneType})
"""Types that any JSON carries as they are; float is missing because NaN and the infinities are not JSON."""


@dataclass(frozen=True, slots=True)
class DroppedResult:
    """Replaces a result that could not be kept: it was too large, or JSON cannot carry it."""

    reason: str
    bytes: int
    """Its size, 0 where unknown."""


def tag(value: Any) -> Any:
    """Return `value` as JSON values. Raises `SerializationError` for what could not be restored unchanged."""
    kind = type(value)
    if kind in NATIVE:
        return value
    write = _WRITERS.get(kind)
    if write is None:
        write = _writer_of_subclass(value)
    return write(value)


def untag(value: Any) -> Any:
    """Restore the value that `tag` was given, from decoded JSON."""
    kind = type(value)
    if kind is list:
        return [untag(item) for item in value]
    if kind is not dict:
        return value
    if TAG not in value:
        return {key: untag(item) for key, item in value.items()}
    try:
        read = _READERS.get(value[TAG])
        if read is not None:
            return read(value)
    except (KeyError, TypeError, ValueError, ArithmeticError, binascii.Error) as error:
        raise SerializationError(f"stored value {short(value)} is damaged: {error}") from error
    raise SerializationError(
        f"stored value {short(value)} is of a kind this version does not know; "
        "it was written by a newer Windlass or by another program"
    )


def plain(value: Any) -> Any:
    """Return `value` itself if `tag` accepts it, else without its classes.

    A dataclass as a dict, an enum as its value.
    """
    try:
        tag(value)
    except SerializationError:
        return msgspec.to_builtins(value, enc_hook=write_custom)
    return value


def write_custom(value: Any) -> Any:
    """Convert a value of a class unknown to the JSON encoder."""
    if isinstance(value, PurePath):
        return str(value)
    if hasattr(type(value), "model_dump"):  # pydantic, known by its method so that it need not be installed
        return value.model_dump(mode="json", by_alias=True, round_trip=True)
    raise SerializationError(f"{short(value)} is not JSON; {remedy(value)}")


def tagged(kind: str, value: Any) -> dict[str, Any]:
    """Return the tagged form of a value that is already JSON."""
    return {TAG: kind, "value": value}


def _write_float(value: float) -> float:
    if not isfinite(value):
        raise SerializationError(NOT_FINITE.format(value))
    return float.__float__(value)


def _write_dict(value: dict[Any, Any]) -> dict[str, Any]:
    if TAG not in value and all(type(key) is str for key in value):
        return {key: tag(item) for key, item in value.items()}
    return tagged("dict", [[tag(key), tag(item)] for key, item in value.items()])


def _sequence_writer(kind: str) -> Callable[[Any], Any]:
    return lambda value: tagged(kind, [tag(item) for item in value])


def _text_writer(kind: str, text: Callable[[Any], str]) -> Callable[[Any], Any]:
    return lambda value: tagged(kind, text(value))


def _base64(value: bytes) -> str:
    return b64encode(value).decode("ascii")


def _write_timedelta(value: timedelta) -> dict[str, Any]:
    return tagged("timedelta", [value.days, value.seconds, value.microseconds])


def _write_job_result(result: JobResult) -> dict[str, Any]:
    """Return it without classes: the reader takes them from the annotations of the job's target."""
    fields = {name: getattr(result, name) for name in JobResult.__slots__}
    fields["args"] = [plain(item) for item in result.args]
    fields["kwargs"] = {name: plain(item) for name, item in result.kwargs.items()}
    fields["value"] = plain(result.value)
    fields |= {"job_id": str(result.job_id), "tags": list(result.tags), "params": dict(result.params)}
    return tagged(JOB_RESULT, tag(fields))


def _read_job_result(stored: dict[str, Any]) -> JobResult:
    fields = untag(stored["value"])
    fields |= {name: tuple(fields[name]) for name in ("args", "tags")}
    return JobResult(**{**fields, "job_id": UUID(fields["job_id"])})


def _write_job_failed(error: JobFailedError) -> dict[str, Any]:
    return tagged(JOB_FAILED, [str(error.job_id), error.reason, error.error, error.error_class])


def _read_job_failed(stored: dict[str, Any]) -> JobFailedError:
    job_id, reason, error, error_class = stored["value"]
    return JobFailedError(UUID(job_id), reason, error, error_class)


_WRITERS: Final[dict[type, Callable[[Any], Any]]] = {
    str: str.__str__,
    int: int.__int__,
    float: _write_float,
    list: lambda value: [tag(item) for item in value],
    dict: _write_dict,
    tuple: _sequence_writer("tuple"),
    set: _sequence_writer("set"),
    frozenset: _sequence_writer("frozenset"),
    bytes: _text_writer("bytes", _base64),
    bytearray: _text_writer("bytearray", _base64),
    datetime: _text_writer("datetime", datetime.isoformat),
    date: _text_writer("date", date.isoformat),
    time: _text_writer("time", time.isoformat),
    timedelta: _write_timedelta,
    UUID: _text_writer("uuid", str),
    Decimal: _text_writer("decimal", str),
    Path: _text_writer("path", str),
    DroppedResult: lambda value: {TAG: DROPPED, "reason": value.reason, "bytes": value.bytes},
    JobResult: _write_job_result,
    JobFailedError: _write_job_failed,
}

_READERS: Final[dict[Any, Callable[[dict[str, Any]], Any]]] = {
    "dict": lambda stored: {untag(key): untag(item) for key, item in stored["value"]},
    "tuple": lambda stored: tuple(untag(item) for item in stored["value"]),
    "set": lambda stored: {untag(item) for item in stored["value"]},
    "frozenset": lambda stored: frozenset(untag(item) for item in stored["value"]),
    "bytes": lambda stored: b64decode(stored["value"], validate=True),
    "bytearray": lambda stored: bytearray(b64decode(stored["value"], validate=True)),
    "datetime": lambda stored: datetime.fromisoformat(stored["value"]),
    "date": lambda stored: date.fromisoformat(stored["value"]),
    "time": lambda stored: time.fromisoformat(stored["value"]),
    "timedelta": lambda stored: timedelta(*stored["value"]),
    "uuid": lambda stored: UUID(stored["value"]),
    "decimal": lambda stored: Decimal(stored["value"]),
    "path": lambda stored: Path(stored["value"]),
    PLAIN: lambda stored: untag(stored["value"]),
    DROPPED: lambda stored: DroppedResult(stored["reason"], stored["bytes"]),
    JOB_RESULT: _read_job_result,
    JOB_FAILED: _read_job_failed,
}

# Harmless subclasses only: their objects equal those of the base. datetime stands before date, whose subclass it is.
_BASES: Final = tuple(kind for kind in _WRITERS if kind is not tuple)


def _writer_of_subclass(value: Any) -> Callable[[Any], Any]:
    if not isinstance(value, Enum):
        for base in _BASES:
            if isinstance(value, base):
                return _WRITERS[base]
    raise SerializationError(f"{short(value)} would not come back as {type(value).__name__}; {remedy(value)}")
