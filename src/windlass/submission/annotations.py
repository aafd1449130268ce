"""Analysis of annotations, as far as it matters for storing values."""

import inspect
import types
import typing
from collections import abc
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from types import NoneType
from typing import Any, Final
from uuid import UUID

from windlass.domain.job_result import JobResult
from windlass.errors import JobFailedError, WindlassError

_CONTAINERS: Final = frozenset(
    {list, tuple, set, frozenset, dict, abc.Collection, abc.Iterable, abc.Mapping, abc.MutableMapping}
    | {abc.Sequence, abc.MutableSequence, abc.Set, abc.MutableSet}
)
_OPEN: Final = _CONTAINERS | {object, inspect.Parameter.empty}
_MAPPINGS: Final = frozenset({dict, abc.Mapping, abc.MutableMapping})
_UNIONS: Final = frozenset({typing.Union, types.UnionType})

_TEXT_LIKE: Final = frozenset({bytes, bytearray, datetime, date, time, timedelta, UUID, Decimal, Path})
_TAGGED: Final = frozenset({Any, JobResult, JobFailedError, WindlassError, Exception, BaseException})
"""Types that are stored with their type. Of exceptions only `JobFailedError`, whichever base a parameter names."""
_BUILTIN: Final = frozenset({NoneType, str, int, float, bool}) | _TEXT_LIKE | _TAGGED
_JSON_KEYS: Final = frozenset({str, int, float, bytes, datetime, date, time, timedelta, UUID, Decimal})
_EXACT: Final[tuple[type, ...]] = (str, int, bool, NoneType)


def leaves(annotation: Any) -> Iterator[Any]:
    """Yield the types an annotation consists of, containers and unions taken apart; `Any` where it is missing."""
    annotation = _unwrapped(annotation)
    origin = typing.get_origin(annotation)
    if isinstance(annotation, typing.TypeVar) or annotation in _OPEN:
        yield Any
    elif origin is typing.Literal:
        yield from (type(value) for value in typing.get_args(annotation))
    elif origin in _CONTAINERS or origin in _UNIONS:
        for argument in typing.get_args(annotation) or (Any,):
            if argument is not ...:
                yield from leaves(argument)
    else:
        yield annotation


def is_builtin(annotation: Any) -> bool:
    """Return whether values of this annotation contain only built-in types (and `Any`)."""
    return all(_hashable(leaf) and leaf in _BUILTIN for leaf in leaves(annotation))


def has_open_part(annotation: Any) -> bool:
    """Return whether part of the annotation leaves the type open, or names one that is stored with its type."""
    return any(_hashable(leaf) and leaf in _TAGGED for leaf in leaves(annotation))


def has_ambiguous_keys(annotation: Any) -> bool:
    """Return whether a mapping in it has keys whose type is ambiguous once they are text."""
    annotation = _unwrapped(annotation)
    arguments = [argument for argument in typing.get_args(annotation) if argument is not ...]
    origin = typing.get_origin(annotation)
    if origin is typing.Literal:
        return False
    if origin in _MAPPINGS and arguments:
        kinds = list(leaves(arguments[0]))
        is_container = typing.get_origin(_unwrapped(arguments[0])) in _CONTAINERS
        if is_container or len(kinds) != 1 or kinds[0] not in _JSON_KEYS:
            return True
    return any(has_ambiguous_keys(argument) for argument in arguments)


def members(annotation: Any) -> tuple[Any, ...]:
    """Return the members of a union; the annotation itself if it is not a union."""
    annotation = _unwrapped(annotation, through_constraints=False)
    return typing.get_args(annotation) if typing.get_origin(annotation) in _UNIONS else (annotation,)


def exact_types(annotation: Any) -> frozenset[type]:
    """Return the types whose objects fit the annotation and JSON unchanged, so that nothing needs checking."""
    found = [_unwrapped(member, through_constraints=False) for member in members(annotation)]
    return frozenset(kind for kind in _EXACT if any(member is kind for member in found))


def takes_floats(annotation: Any) -> bool:
    """Return whether any finite float fits."""
    return any(_unwrapped(member, through_constraints=False) is float for member in members(annotation))


def readable(annotation: Any) -> Any:
    """Return the annotation in a form that a decoder knows: an iterable is read as a list."""
    if annotation is abc.Iterable:
        return list
    if typing.get_origin(annotation) is abc.Iterable:
        return list[typing.get_args(annotation)[0]]  # type: ignore[misc]  # built at run time
    return annotation


def _unwrapped(annotation: Any, *, through_constraints: bool = True) -> Any:
    """Resolve new types, aliases and, where constraints do not matter, `Annotated`; None becomes its type."""
    while True:
        if isinstance(annotation, typing.NewType):
            annotation = annotation.__supertype__
        elif type(annotation).__name__ == "TypeAliasType":  # Python 3.12: type Name = ...
            annotation = annotation.__value__
        elif through_constraints and typing.get_origin(annotation) is typing.Annotated:
            annotation = typing.get_args(annotation)[0]
        else:
            return NoneType if annotation is None else annotation


def _hashable(value: Any) -> bool:
    return isinstance(value, abc.Hashable)
