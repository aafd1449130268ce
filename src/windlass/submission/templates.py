"""Arguments with marks: parameters that are filled in once another job has ended.

A follower stores such arguments, and so does a callback. `RESULT` in a call becomes a mark; the rest is encoded when
the call is stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any

import msgspec

from windlass.domain.job_result import JobResult, Placeholder
from windlass.errors import PayloadTooLargeError, SerializationError
from windlass.submission.annotations import leaves
from windlass.submission.codec import by_name, by_position, encode_one
from windlass.submission.error_text import short
from windlass.submission.signature import CallSpec, Parameter
from windlass.submission.stored_options import MarkName, Path
from windlass.submission.tagged import untag


class Mark(Enum):
    """What a marked argument becomes once the job has ended."""

    OUTCOME = "outcome"
    """The `JobResult`; behind a group: those of its members."""
    VALUE = "value"
    """The job's return value; behind a group: those of its members."""
    ERROR = "error"
    """The failure as a `JobFailedError`."""
    ERROR_TEXT = "error_text"
    """The failure as its stored text."""


class Template:
    """Arguments as JSON values, and which of them are marks: those are None."""

    def __init__(self) -> None:
        self.positional: list[Any] = []
        self.named: dict[str, Any] = {}
        self.marks: dict[str, MarkName] = {}
        self.paths: dict[str, Path] = {}

    def mark(self, argument: str, mark: Mark, path: Path = ()) -> None:
        """Mark an argument, by its index or name."""
        self.marks[argument] = mark.value
        if path:
            self.paths[argument] = path

    def text(self, spec: CallSpec, max_bytes: int, what: str = "") -> str:
        """Return the stored form; raise `PayloadTooLargeError` if it is too large."""
        data = msgspec.json.encode((self.positional, self.named))
        if len(data) > max_bytes:
            raise PayloadTooLargeError(
                f"{what}the arguments of {spec.name}() take {len(data):,} bytes as JSON, more than the limit of "
                f"{max_bytes:,}; store the data elsewhere and pass its id, or raise jobs.max_payload_bytes"
            )
        return data.decode()


def has_marks(args: Iterable[Any], kwargs: Mapping[str, Any]) -> bool:
    """Return whether `RESULT` is an argument of a call. By type: a lazy proxy may raise if asked for its class."""
    return any(type(value) is Placeholder for value in (*args, *kwargs.values()))


def template_of(spec: CallSpec, args: Sequence[Any], kwargs: Mapping[str, Any], *, outcomes: bool = False) -> Template:
    """Return the arguments of a call, encoded by the signature; `RESULT` becomes the mark that its parameter needs.

    `outcomes`: it is always a `JobResult`, because the job may not have succeeded.
    """
    template = Template()

    def encoded(argument: str, name: str, parameter: Parameter, value: Any) -> Any:
        if type(value) is not Placeholder:
            return encode_one(spec, name, parameter, value)
        asks = outcomes or asks_for_outcome(parameter)
        template.mark(argument, Mark.OUTCOME if asks else Mark.VALUE, value.path)
        return None

    for number, item in enumerate(by_position(spec, args)):
        template.positional.append(encoded(str(number), *item))
    for name, value in kwargs.items():
        template.named[name] = encoded(_argument_key(name), name, by_name(spec, name), value)
    return template


def _argument_key(name: str) -> str:
    """Return where the argument of a name is marked. `f(**{"0": …})` has a name that is not the index of a position."""
    return f"={name}" if name.isdecimal() else name


def asks_for_outcome(parameter: Parameter) -> bool:
    """Return whether a parameter is annotated to take a `JobResult`, or several."""
    return any(leaf is JobResult for leaf in leaves(parameter.annotation))


def filled(
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    marks: Mapping[str, MarkName],
    paths: Mapping[str, Path],
    values: Mapping[Mark, Any],
) -> tuple[list[Any], dict[str, Any]]:
    """Return stored arguments with every mark replaced by its value, or by the part of it that the mark names."""
    known = {argument: part_of(values[Mark(mark)], paths.get(argument, ())) for argument, mark in marks.items()}
    return (
        [known[str(number)] if str(number) in known else _read(item) for number, item in enumerate(args)],
        {
            name: known[_argument_key(name)] if _argument_key(name) in known else _read(item)
            for name, item in kwargs.items()
        },
    )


def part_of(value: Any, path: Path) -> Any:
    """Return the part of a result that `RESULT[…]` names; raise `SerializationError` if there is none."""
    for key in path:
        try:
            value = getattr(value, key) if isinstance(value, JobResult) and isinstance(key, str) else value[key]
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            raise SerializationError(
                f"{Placeholder(tuple(path))} does not exist in the result {short(value)} ({type(error).__name__}: "
                f"{error}); change what the job returns, or the part that is asked for"
            ) from None
    return value


def shown(
    args: Sequence[Any], kwargs: Mapping[str, Any], marks: Iterable[str], paths: Mapping[str, Path]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return stored arguments for display: `RESULT` where they are marked."""
    placeholders = {argument: Placeholder(tuple(paths.get(argument, ()))) for argument in marks}
    return (
        tuple(placeholders.get(str(number), _read(item)) for number, item in enumerate(args)),
        {name: placeholders.get(_argument_key(name), _read(item)) for name, item in kwargs.items()},
    )


def _read(item: Any) -> Any:
    """Restore built-in types; encoding them again gives the same JSON."""
    try:
        return untag(item)
    except SerializationError:  # a user's dict that looks like ours
        return item
