"""Values of items as stored texts, by the number of their type in the definition, and their fingerprints."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import msgspec

from windlass.errors import PayloadTooLargeError
from windlass.pipelines.definition import Definition
from windlass.retry_signals import DoNotRetry
from windlass.spi import Serializer
from windlass.submission.codec import NO_LIMIT
from windlass.submission.signature import CallSpec, call_spec

_ANY_SIZE = NO_LIMIT - 1
"""No limit of size. `NO_LIMIT` would not limit the depth of values either."""


class ValueNotStoredError(DoNotRetry):
    """What a step gave cannot be stored: its type, its size or its content does not allow it."""


class Values:
    """Encodes and decodes the values of one definition with the application's serializer.

    A value is stored as the one argument of a function with the type as annotation, so that everything which holds for
    arguments (what can be stored, errors, encryption) holds for values.
    """

    def __init__(self, definition: Definition, serializer: Serializer, limit: int) -> None:
        self._serializer = serializer
        self._limit = limit
        self._shapes = [_shape(annotation) for annotation in definition.types]
        self._requests = {step.index: _shape(step.request) for step in definition.steps if step.wait}

    def encode(self, number: int, value: Any) -> str:
        """Return the stored form; raises `SerializationError` or `PayloadTooLargeError`."""
        return self._encode(self._shapes[number], value)

    def encode_request(self, step: int, value: Any) -> str:
        """Return the stored form of what a step shows to the outside."""
        return self._encode(self._requests[step], value)

    def decode_request(self, step: int, text: str | None) -> Any:
        """Return what a step shows to the outside."""
        return None if text is None else self._decode(self._requests[step], text)

    def converted(self, number: int, value: Any) -> Any:
        """Return plain values (dicts, lists) as a value of a type; raises `SerializationError` if they do not fit."""
        return self._decode(self._shapes[number], self._encode(_ANYTHING, value))

    def _encode(self, shape: CallSpec, value: Any) -> str:
        text = self._serializer.encode_arguments(shape, (value,), {}, _ANY_SIZE)
        if (size := len(text.encode())) > self._limit:
            raise PayloadTooLargeError(
                f"the value takes {size:,} bytes as JSON, more than the limit of {self._limit:,}; store the data "
                "elsewhere and pass its id, or raise pipelines.max_value_bytes"
            )
        return text

    def decode(self, number: int, text: str | None) -> Any:
        """Return a stored value; raises `SerializationError` if it no longer fits its type."""
        if text is None:
            return None
        return self._decode(self._shapes[number], text)

    def _decode(self, shape: CallSpec, text: str) -> Any:
        args, _ = self._serializer.decode_arguments(shape, text)
        return args[0] if args else None

    @property
    def nothing(self) -> str:
        """The stored form of no value: the arguments of an execution that begins with an item in its log."""
        return self._serializer.encode_arguments(self._shapes[0], (), {}, self._limit)


def _shape(annotation: Any) -> CallSpec:
    def value(item: Any = None) -> None:
        del item

    value.__annotations__ = {"item": annotation}
    value.__qualname__ = "value"  # errors name it
    return call_spec(value)


_ANYTHING = _shape(Any)


def canonical(value: Any) -> str:
    """Return a value as canonical JSON: sorted keys and sets, no spaces. What is no JSON is written by its `repr`."""
    try:
        plain = msgspec.to_builtins(value, str_keys=True, order="deterministic", enc_hook=repr)
        return json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    except Exception:  # noqa: BLE001 - classes of the user; the hash of their text still distinguishes most of them
        return json.dumps(repr(value), ensure_ascii=False)


def fingerprint(value: Any) -> str:
    """Return the SHA-256 of a value's canonical JSON, in hexadecimal digits."""
    return hashlib.sha256(canonical(value).encode("utf-8", "backslashreplace")).hexdigest()
