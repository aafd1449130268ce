"""How values of one annotation are encoded and decoded; created once per annotation.

A value is encoded by its type and decoded by its annotation, and both are tried when it is submitted: what would not be
restored unchanged is refused there. Values without a complete annotation carry their type (see `tagged`).
"""

from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from pathlib import PurePath
from types import GenericAlias
from typing import Any, Final, NoReturn
from uuid import UUID

import msgspec

from windlass.errors import SerializationError
from windlass.submission import annotations
from windlass.submission.error_text import NOT_FINITE, type_name
from windlass.submission.fidelity import find_loss, not_finite
from windlass.submission.tagged import NATIVE, TAG_IN_JSON, tag, untag, write_custom

_PYTHON_TYPES: Final = (bytes, bytearray, datetime, date, time, timedelta, UUID, Decimal)


def _read_custom(cls: Any, stored: Any) -> Any:
    if isinstance(cls, type) and isinstance(stored, cls):  # it carried its type
        return stored
    if isinstance(cls, type) and issubclass(cls, PurePath):
        return cls(stored)
    if hasattr(cls, "model_validate_json"):
        return cls.model_validate_json(ENCODER.encode(stored))
    raise TypeError(f"`{type_name(cls)}` cannot be read from JSON; make it a dataclass, or annotate what is passed")


ENCODER: Final = msgspec.json.Encoder(enc_hook=write_custom)
read_json: Final = msgspec.json.Decoder().decode


class ValueCodec:
    """Writes and reads values of one annotation.

    Objects of `exact` types, and finite floats if `floats`, need no checking. `read` is the fast path for JSON without
    tags and may raise anything; `decode` handles everything and explains what is wrong.
    """

    __slots__ = ("annotation", "exact", "floats", "read")

    annotation: Any
    exact: frozenset[type]
    floats: bool
    read: Callable[[Any], Any]

    def encode(self, value: Any) -> bytes:
        """Return `value` as JSON; raise `SerializationError` saying why it cannot be kept and what to do."""
        raise NotImplementedError

    def decode(self, raw: Any) -> Any:
        """Return the stored value; raise `SerializationError` if it does not fit the annotation."""
        try:
            return self._read_all(raw)
        except SerializationError:
            raise
        except Exception as error:  # user code may run here: __post_init__, validators
            raise SerializationError(_reason(error)) from error

    def _read_all(self, raw: Any) -> Any:
        return self.read(raw)


class TypedValue(ValueCodec):
    """Values with a complete annotation: plain JSON, decoded for exactly this type."""

    __slots__ = ()

    def __init__(self, annotation: Any) -> None:
        self.annotation = annotation
        self.read = msgspec.json.Decoder(annotations.readable(annotation), dec_hook=_read_custom).decode
        self.exact = annotations.exact_types(annotation)
        self.floats = annotations.takes_floats(annotation)

    def encode(self, value: Any) -> bytes:
        """See `ValueCodec.encode`."""
        data = _to_json(value)
        if b"null" in data:
            _refuse_not_finite(value)
        try:
            loss = find_loss(value, self.read(data))
        except Exception as error:  # user code may run here: __post_init__, validators
            raise SerializationError(_misfit(error, self.annotation)) from error
        if loss is not None:
            raise SerializationError(loss)
        return data

    def _read_all(self, raw: Any) -> Any:
        try:
            return self.read(raw)
        except Exception:
            if TAG_IN_JSON not in bytes(raw):
                raise
        return _convert(untag(read_json(raw)), self.annotation)  # stored before the parameter was annotated


class OpenValue(ValueCodec):
    """Values of built-in types whose annotation is incomplete, or distinguishes more than JSON can."""

    __slots__ = ("_checks",)

    def __init__(self, annotation: Any = Any) -> None:
        self.annotation = annotation
        self._checks = _checkable(annotation)
        self.read = self._read if self._checks else read_json
        self.exact = annotations.exact_types(annotation) if self._checks else NATIVE
        self.floats = not self._checks or annotations.takes_floats(annotation)

    def encode(self, value: Any) -> bytes:
        """See `ValueCodec.encode`."""
        try:
            plain = tag(value)
        except RecursionError:
            raise SerializationError(_CIRCULAR) from None
        self._check(value)
        return _to_json(plain)

    def _read_all(self, raw: Any) -> Any:
        if TAG_IN_JSON not in bytes(raw):
            return self.read(raw)
        return self._check(untag(read_json(raw)))

    def _read(self, raw: Any) -> Any:
        return self._check(read_json(raw))

    def _check(self, value: Any) -> Any:
        if not self._checks:
            return value
        misfit: Exception | None = None
        for candidate in self._checks:
            try:
                return _convert(value, candidate)
            except msgspec.ValidationError as error:
                misfit = misfit or error
        raise SerializationError(_misfit(misfit, self.annotation)) from misfit


class UnusableValue(ValueCodec):
    """An annotation by which no value can be stored; using it raises that error."""

    __slots__ = ("_why",)

    def __init__(self, annotation: Any, why: str) -> None:
        self.annotation = annotation
        self.exact = frozenset()
        self.floats = False
        self.read = self._refuse
        self._why = why

    def encode(self, value: Any) -> bytes:
        """See `ValueCodec.encode`."""
        self._refuse(value)

    def _refuse(self, _value: Any) -> NoReturn:
        raise SerializationError(
            f"the annotation {type_name(self.annotation)} cannot be stored: {self._why}; "
            "for one of several classes use msgspec.Structs with a tag"
        )


def value_codec(annotation: Any) -> ValueCodec:
    """Return the codec of an annotation; `typing.Any` (or none at all) takes every built-in type."""
    try:
        return _cached(annotation)
    except TypeError:  # not hashable, e.g. Annotated[int, {"unit": "ms"}]
        return _build(annotation)


Envelope = tuple[tuple[Any, ...], dict[str, Any]]


def envelope_reader(codecs: Sequence[ValueCodec]) -> Callable[[str], Envelope] | None:
    """Return a decoder of all arguments at once, if every annotation is complete. It may raise anything."""
    if not all(isinstance(codec, TypedValue) for codec in codecs):
        return None
    types = tuple([annotations.readable(codec.annotation) for codec in codecs])
    try:
        shape: Any = GenericAlias(tuple, (GenericAlias(tuple, types), dict[str, Any]))
        return msgspec.json.Decoder(shape, dec_hook=_read_custom).decode
    except Exception:  # noqa: BLE001 - msgspec refuses some types together that it takes one by one
        return None


def _build(annotation: Any) -> ValueCodec:
    builtin = annotations.is_builtin(annotation)
    if builtin and (annotations.has_open_part(annotation) or annotations.has_ambiguous_keys(annotation)):
        return OpenValue(annotation)
    try:
        return TypedValue(annotation)
    except Exception as error:  # noqa: BLE001 - msgspec looks into user classes, which may raise anything
        return OpenValue(annotation) if builtin else UnusableValue(annotation, str(error))


_cached = lru_cache(maxsize=1024)(_build)

_CIRCULAR: Final = "it contains itself, or is nested too deeply; pass ids instead of objects that refer to each other"


def _to_json(value: Any) -> bytes:
    try:
        return ENCODER.encode(value)
    except SerializationError:
        raise
    except RecursionError:
        raise SerializationError(_CIRCULAR) from None
    except Exception as error:  # user code may run here: pydantic serializers
        raise SerializationError(f"{_reason(error)}; pass what JSON can carry") from error


def _checkable(annotation: Any) -> tuple[Any, ...]:
    """Return the types of which a value must have one; empty if everything is allowed, or nothing can be checked."""
    if annotation in (Any, object):
        return ()
    for candidates in ((annotation,), annotations.members(annotation)):
        try:
            for candidate in candidates:
                msgspec.json.Decoder(annotations.readable(candidate))
        except TypeError:
            continue
        return candidates
    return ()


def _convert(value: Any, annotation: Any) -> Any:
    return msgspec.convert(value, annotations.readable(annotation), builtin_types=_PYTHON_TYPES, dec_hook=_read_custom)


def _refuse_not_finite(value: Any) -> None:
    """Raise for NaN and infinities: JSON writes them as null, which an annotation may allow."""
    found = not_finite(msgspec.to_builtins(value, enc_hook=write_custom))
    if found is not None:
        raise SerializationError(NOT_FINITE.format(found))


def _misfit(error: Exception | None, annotation: Any) -> str:
    return f"{_reason(error)}; pass a value of type {type_name(annotation)}, or change the annotation"


def _reason(error: Exception | None) -> str:
    return str(error) or type(error).__name__
