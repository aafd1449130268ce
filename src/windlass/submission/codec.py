"""Arguments and results as typed JSON text, checked where they are written.

Arguments are stored as `[[positional, ...], {keyword: ...}]`. Each is written by what it is and read by its parameter's
annotation; without one, built-in types come back as what they were (see `tagged`). Some limits of JSON remain:

- NaN and the infinities are refused: JSON cannot carry them.
- An aware datetime comes back as the same moment with the same offset, not with its zone's name.
- Nothing is ever pickled.

```python
spec = call_spec(charge)                             # def charge(invoice: int, when: datetime) -> str
text = encode_arguments(spec, (42, when), {})        # '[[42,"2030-01-01T00:00:00Z"],{}]'
args, kwargs = decode_arguments(spec, text)
```
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, repeat
from math import isfinite
from sys import maxsize
from typing import Any, Final, cast

import msgspec

from windlass.domain.job_result import JobResult
from windlass.errors import PayloadTooLargeError, SerializationError
from windlass.spi import CallShape, Serializer
from windlass.submission.error_text import short
from windlass.submission.json_depth import MAX_LEVELS, TOO_DEEP, is_too_deep
from windlass.submission.signature import CallSpec, Parameter
from windlass.submission.tagged import DROPPED, JOB_RESULT, PLAIN, TAG, TAG_IN_JSON, tag, tagged, untag
from windlass.submission.values import ENCODER, TypedValue, read_json, value_codec

MAX_PAYLOAD_BYTES: Final = 100 * 1024
MAX_RESULT_BYTES: Final = 64 * 1024
NO_LIMIT: Final = maxsize
"""For text that the engine writes itself, which may have any size and depth: limits are for users' values."""

_read_envelope: Final = msgspec.json.Decoder(tuple[list[msgspec.Raw], dict[str, msgspec.Raw]]).decode
_STARTS_WITH_TAG: Final = b"{" + TAG_IN_JSON
_TAG_IN_TEXT: Final = TAG_IN_JSON.decode()
_JOB_RESULT_IN_TEXT: Final = f'{_TAG_IN_TEXT}:"{JOB_RESULT}"'


class JsonSerializer:
    """The default `Serializer`: this module's functions as an object.

    `spec_of` gives the call spec of a target that is known here: a `JobResult` among the arguments then has the types
    that its target's annotations name, and plain JSON otherwise.
    """

    __slots__ = ("_spec_of",)

    def __init__(self, spec_of: Callable[[str], CallSpec | None] = lambda _: None) -> None:
        self._spec_of = spec_of

    def encode_arguments(self, shape: CallShape, args: Sequence[Any], kwargs: Mapping[str, Any], limit: int) -> str:
        """See `encode_arguments`."""
        return encode_arguments(cast("CallSpec", shape), args, kwargs, limit)

    def decode_arguments(self, shape: CallShape, text: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """See `decode_arguments`."""
        args, kwargs = decode_arguments(cast("CallSpec", shape), text)
        if _JOB_RESULT_IN_TEXT not in text:
            return args, kwargs
        return tuple(map(self._typed, args)), {name: self._typed(value) for name, value in kwargs.items()}

    def _typed(self, value: Any) -> Any:
        spec = self._spec_of(value.target) if isinstance(value, JobResult) else None
        return value if spec is None else typed_result(value, spec)

    def encode_result(self, value: Any, annotation: Any, limit: int) -> tuple[str | None, str | None]:
        """See `encode_result`."""
        return encode_result(value, annotation, limit)

    def decode_result(self, text: str | None, annotation: Any) -> Any:
        """See `decode_result`."""
        return decode_result(text, annotation)


def encode_arguments(
    spec: CallSpec, args: Sequence[Any], kwargs: Mapping[str, Any], limit: int = MAX_PAYLOAD_BYTES
) -> str:
    """Return the stored form of a call's arguments, which must have passed `spec.bind_check`.

    Raises `SerializationError`, naming parameter and value, for what would not come back as it is, and
    `PayloadTooLargeError` if the text has more than `limit` bytes.
    """
    data = _encode_exact(spec, args, kwargs)
    if data is None:
        deepest = NO_LIMIT if limit == NO_LIMIT else MAX_LEVELS
        positional = [encode_one(spec, *item, deepest) for item in by_position(spec, args)]
        keyword = {name: encode_one(spec, name, by_name(spec, name), value, deepest) for name, value in kwargs.items()}
        data = ENCODER.encode((positional, keyword))
    if len(data) > limit:
        raise PayloadTooLargeError(
            f"{spec.name}(): its arguments take {len(data):,} bytes as JSON, more than the limit of {limit:,}; "
            "store the data elsewhere and pass its id, or raise jobs.max_payload_bytes"
        )
    return data.decode()


def _encode_exact(spec: CallSpec, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bytes | None:
    """Return the arguments as JSON if every value fits JSON and its parameter unchanged; None otherwise."""
    if len(args) > len(spec.positional):
        return None
    for parameter, value in zip(spec.positional, args):  # noqa: B905 - shorter when defaults are left out
        kind = type(value)
        if kind not in parameter.exact and not (kind is float and parameter.floats and isfinite(value)):
            return None
    for name, value in kwargs.items():
        named = spec.keyword.get(name)
        if named is None or type(value) not in named.exact:
            return None
    try:
        return ENCODER.encode((args, kwargs))
    except ValueError:  # lone surrogates, huge integers: the slow path finds out which argument it is
        return None


def encode_one(spec: CallSpec, name: str, parameter: Parameter, value: Any, levels: int = MAX_LEVELS) -> msgspec.Raw:
    """Return one argument's JSON; an error names the argument."""
    try:
        data = parameter.value.encode(value)
        if is_too_deep(data, levels):
            raise SerializationError(TOO_DEEP)
        return msgspec.Raw(data)
    except SerializationError as error:
        raise SerializationError(
            f"{spec.name}(): argument {name!r} = {short(value)} cannot be stored: {error}"
        ) from error.__cause__
    except Exception as error:  # code of the value's class runs here: a lazy proxy, a row of a closed session
        raise SerializationError(
            f"{spec.name}(): argument {name!r} of type {type(value).__name__} cannot be stored: reading it raised "
            f"{type(error).__name__}; pass plain values, or an id by which the job finds it"
        ) from error


def decode_arguments(spec: CallSpec, text: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return stored arguments by the current signature; raise `SerializationError` if they no longer fit it."""
    tagged_text = _TAG_IN_TEXT in text
    if spec.read_all is not None and not tagged_text:
        try:
            given, named = spec.read_all(text)
            if not named:
                return given, named
        except Exception:  # noqa: BLE001, S110 - defaults left out, or damage: the slow path below distinguishes them
            pass
    try:
        args, kwargs = _read_envelope(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise SerializationError(f"{spec.name}(): stored arguments {short(text)} are damaged: {error}") from error
    try:
        spec.bind_check(args, kwargs)
    except TypeError as error:
        raise SerializationError(f"stored arguments no longer fit the signature: {error}") from None
    if len(args) <= len(spec.positional) and not tagged_text:
        try:
            values = tuple([parameter.read(raw) for parameter, raw in zip(spec.positional, args)])  # noqa: B905
            return values, {name: spec.keyword[name].read(raw) for name, raw in kwargs.items()} if kwargs else {}
        except Exception:  # noqa: BLE001, S110 - the slow path below meets the same error and names the parameter
            pass
    positional = [_decode_one(spec, *item) for item in by_position(spec, args)]
    return tuple(positional), {name: _decode_one(spec, name, by_name(spec, name), raw) for name, raw in kwargs.items()}


def _decode_one(spec: CallSpec, name: str, parameter: Parameter, raw: msgspec.Raw) -> Any:
    try:
        return parameter.value.decode(raw)
    except SerializationError as error:
        raise SerializationError(
            f"{spec.name}(): stored argument {name!r} = {short(bytes(raw).decode())} no longer fits the "
            f"signature: {error}"
        ) from error.__cause__


def plain_arguments(text: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return stored arguments without the signature, for display: plain JSON, and tagged values with their type."""
    match untag(read_json(text)):
        case [list(args), dict(kwargs)]:
            return tuple(args), kwargs
    raise SerializationError(f"stored arguments {short(text)} are damaged: expected [[positional, …], {{name: …}}]")


def by_position(spec: CallSpec, args: Sequence[Any]) -> Iterator[tuple[str, Parameter, Any]]:
    """Yield positional arguments with their parameters."""
    parameters = chain(spec.positional, repeat(spec.var_positional))
    for parameter, value in zip(parameters, args, strict=False):
        if parameter is None:
            raise TypeError(f"{spec.name}(): got more than {len(spec.positional)} positional arguments")
        yield parameter.name, parameter, value


def by_name(spec: CallSpec, name: str) -> Parameter:
    """Return the parameter that takes an argument of this name."""
    parameter = spec.keyword.get(name) or spec.var_keyword
    if parameter is None:
        raise TypeError(f"{spec.name}(): got an unexpected keyword argument {name!r}")
    return parameter


def encode_result(value: Any, annotation: Any = Any, limit: int = MAX_RESULT_BYTES) -> tuple[str | None, str | None]:
    """Return a result's stored form (None for None), and a warning if it could not be kept unchanged.

    The body has run, so nothing is raised: a result that its annotation does not describe is kept as plain JSON; one
    that is too large or not JSON at all is replaced by a marker, which `decode_result` returns as `DroppedResult`.
    """
    if value is None:
        return None, None
    warning = None
    try:
        codec = value_codec(annotation)
        data = codec.encode(value)
        if data.startswith(_STARTS_WITH_TAG) and isinstance(codec, TypedValue):  # a user's dict that looks like ours
            data = value_codec(Any).encode(value)
    except SerializationError as misfit:
        try:
            data = _plain(value)
        except Exception as error:  # noqa: BLE001 - user code may run here, and the job has succeeded
            return _dropped(f"the result {short(value)} cannot be stored: {error}", 0)
        warning = f"the result {short(value)} is kept as plain JSON: {misfit}"
    if len(data) > limit:
        reason = (
            f"the result takes {len(data):,} bytes as JSON, more than the limit of {limit:,} (jobs.max_result_bytes)"
        )
        return _dropped(reason, len(data))
    if is_too_deep(data):
        return _dropped(f"the result {short(value)} cannot be stored: {TOO_DEEP}", len(data))
    return data.decode(), warning


def stored_result(serializer: Serializer, value: Any, annotation: Any, limit: int) -> tuple[str | None, str | None]:
    """Encode a result; one that cannot even be read is replaced by a marker.

    The serializer and classes may be the user's and raise anything, but the body has run: failing its job would run it
    again.
    """
    try:
        return serializer.encode_result(value, annotation, limit)
    except BaseException as error:  # noqa: BLE001 - a lazy proxy may do anything when it is read, even exit
        kind, raised = type(value).__name__, type(error).__name__
        return _dropped(f"the result of type {kind} cannot be stored: reading it raised {raised}", 0)


def _plain(value: Any) -> bytes:
    return ENCODER.encode(tagged(PLAIN, tag(msgspec.to_builtins(value, enc_hook=ENCODER.enc_hook))))


def dropped_result(reason: str, size: int) -> str:
    """Return the marker of a result that is not kept, which `decode_result` returns as `DroppedResult`."""
    return _dropped(reason, size)[0]


def _dropped(reason: str, size: int) -> tuple[str, str]:
    return ENCODER.encode({TAG: DROPPED, "reason": reason, "bytes": size}).decode(), reason


def decode_result(text: str | None, annotation: Any = Any) -> Any:
    """Return a stored result, converted by its annotation; plain JSON where that is not known.

    A `DroppedResult` says why the result was not kept. Raises `SerializationError` if it does not fit the annotation.
    """
    if text is None:
        return None
    raw = text.encode()
    codec = value_codec(Any if raw.startswith(_STARTS_WITH_TAG) else annotation)
    try:
        return codec.decode(raw)
    except (SerializationError, msgspec.DecodeError, RecursionError) as error:
        raise SerializationError(f"stored result {short(text)} does not fit its annotation: {error}") from error


def typed_result(result: JobResult, spec: CallSpec) -> JobResult:
    """Return a decoded `JobResult` with the types of its target's annotations where they fit."""
    try:
        stored = ENCODER.encode(tag([list(result.args), dict(result.kwargs)])).decode()
        args, kwargs = decode_arguments(spec, stored)
        result = replace(result, args=args, kwargs=kwargs)
    except SerializationError:
        pass
    try:
        if result.value is not None:
            stored = ENCODER.encode(tag(result.value)).decode()
            result = replace(result, value=decode_result(stored, spec.returns))
    except SerializationError:
        pass
    return result
