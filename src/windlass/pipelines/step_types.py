"""Annotations of steps, taken apart: the members of unions, the class of each, the element of a stream, its name."""

import inspect
import types
import typing
from collections import abc
from types import NoneType
from typing import Any, Final, Protocol

_UNIONS: Final = (typing.Union, types.UnionType)
_SYNC_STREAMS: Final = (abc.Iterable, abc.Iterator, abc.Generator)
_LISTS: Final = (list, tuple, abc.Sequence, abc.MutableSequence, abc.Collection)
_ASYNC_STREAMS: Final = (abc.AsyncIterable, abc.AsyncIterator, abc.AsyncGenerator)
_NOTHING: Final = (typing.NoReturn, typing.Never)


class _EmptyProtocol(Protocol):
    """A protocol without members: what its class has, every protocol has."""


_OF_EVERY_PROTOCOL: Final = frozenset(vars(_EmptyProtocol)) | frozenset(
    {"__annotations__", "__annotate__", "__annotate_func__", "__annotations_cache__", "__classcell__", "__slots__"}
    | {"__doc__", "__dict__", "__weakref__", "__parameters__", "__orig_bases__", "__type_params__", "__hash__"}
    | {"__non_callable_proto_members__", "__match_args__", "__class_getitem__", "_is_runtime_protocol"}
)


def unwrapped(annotation: Any) -> Any:
    """Return the annotation without aliases, new types and `Annotated`; a type variable is its bound."""
    while True:
        if isinstance(annotation, typing.NewType):
            annotation = annotation.__supertype__
        elif type(annotation).__name__ == "TypeAliasType":  # Python 3.12: type Name = ...
            annotation = annotation.__value__
        elif typing.get_origin(annotation) is typing.Annotated:
            annotation = typing.get_args(annotation)[0]
        elif isinstance(annotation, typing.TypeVar):
            bounds = annotation.__constraints__ or (annotation.__bound__ or Any,)
            annotation = typing.Union[bounds]  # noqa: UP007 - the members are known at run time only
        else:
            return NoneType if annotation is None else annotation


def is_anything(annotation: Any) -> bool:
    """Return whether every value has this type."""
    return unwrapped(annotation) in (Any, object)


def members(annotation: Any) -> tuple[Any, ...]:
    """Return the members of a union, in the order of their names; the annotation itself if it is none.

    The order does not depend on the one in which they are written: `typing` returns whichever was written first.
    """
    plain = unwrapped(annotation)
    if plain in _NOTHING:
        return ()
    if typing.get_origin(plain) not in _UNIONS:
        return (NoneType if annotation is None else annotation,)
    found: list[Any] = []
    for argument in typing.get_args(plain):
        found.extend(member for member in members(argument) if member not in found)
    return tuple(sorted(found, key=lambda member: (type_name(member), str(getattr(member, "__module__", "")))))


def class_of(annotation: Any) -> type | None:
    """Return the class that a member's values are instances of; None where `isinstance` cannot decide."""
    plain = unwrapped(annotation)
    if typing.is_typeddict(plain):
        return dict
    origin = typing.get_origin(plain)
    found = plain if origin is None else origin
    return found if isinstance(found, type) and found is not object and not is_protocol(found) else None


def is_protocol(annotation: Any) -> bool:
    """Return whether it is a class of protocols."""
    return isinstance(annotation, type) and bool(getattr(annotation, "_is_protocol", False))


def protocol_of(annotation: Any) -> type | None:
    """Return the protocol that a member is, without its arguments."""
    plain = unwrapped(annotation)
    origin = typing.get_origin(plain) or plain
    return origin if is_protocol(origin) and origin is not Protocol else None


def protocol_members(protocol: type) -> dict[str, bool]:
    """Return the names that a protocol requires, and whether each is a method."""
    found: dict[str, bool] = {}
    for base in protocol.__mro__:
        if is_protocol(base) and base is not Protocol:
            for name in (*inspect.get_annotations(base), *vars(base)):
                if name not in _OF_EVERY_PROTOCOL and not name.startswith("_abc_"):
                    found.setdefault(name, callable(vars(base).get(name)))
    return found


def literals_of(annotation: Any) -> tuple[Any, ...] | None:
    """Return the values of a `Literal`; None if it is none."""
    plain = unwrapped(annotation)
    return typing.get_args(plain) if typing.get_origin(plain) is typing.Literal else None


def is_async_stream(annotation: Any) -> bool:
    """Return whether it is an async iterable."""
    plain = unwrapped(annotation)
    return (typing.get_origin(plain) or plain) in _ASYNC_STREAMS


def is_stream(annotation: Any) -> bool:
    """Return whether a parameter of this annotation takes a stream: any iterable, list or tuple of one type."""
    plain = unwrapped(annotation)
    origin = typing.get_origin(plain) or plain
    if origin is tuple and typing.get_args(plain):
        return typing.get_args(plain)[1:] == (...,)
    return origin in _SYNC_STREAMS or origin in _LISTS or origin in _ASYNC_STREAMS


def is_list(annotation: Any) -> bool:
    """Return whether it is a stream of known length: a list, sequence, collection or tuple."""
    plain = unwrapped(annotation)
    return (typing.get_origin(plain) or plain) in _LISTS


def element_of(annotation: Any) -> Any:
    """Return the type of the elements of an iterable or async iterable; None if it is neither, or is text.

    Example: `element_of(Iterator[int]) is int`, `element_of(int) is None`, `element_of(list) is Any`
    """
    plain = unwrapped(annotation)
    if is_anything(plain):
        return Any
    origin, arguments = typing.get_origin(plain) or plain, typing.get_args(plain)
    if not isinstance(origin, type) or issubclass(origin, str | bytes | bytearray):
        return None
    if origin is tuple and arguments:
        parts = [argument for argument in arguments if argument is not ...]
        return typing.Union[tuple(parts)]  # noqa: UP007 - the members are known at run time only
    if issubclass(origin, abc.Iterable | abc.AsyncIterable) or is_async_stream(plain):
        return arguments[0] if arguments and origin.__module__ in _STANDARD else Any
    return None


_STANDARD: Final = frozenset({"builtins", "collections", "collections.abc"})
"""Modules of classes whose first type argument is the type of their elements."""


def type_name(annotation: Any) -> str:
    """Return the name of a type, without modules: the same in every process and version of Python.

    Example: `type_name(typing.Optional[dict[str, int]]) == "None | dict[str, int]"`
    """
    if annotation is None or annotation is NoneType:
        return "None"
    if annotation is ...:
        return "..."
    if isinstance(annotation, typing.NewType | typing.TypeVar):
        return annotation.__name__
    if isinstance(annotation, list):  # the parameters of a Callable
        return f"[{', '.join(map(type_name, annotation))}]"
    plain = unwrapped(annotation)
    if plain is not annotation:
        return type_name(plain)
    origin, arguments = typing.get_origin(plain), typing.get_args(plain)
    if origin is typing.Literal:
        return f"Literal[{', '.join(map(repr, arguments))}]"
    if origin in _UNIONS:
        return " | ".join(sorted(map(type_name, arguments)))
    named = plain if origin is None else origin
    name = getattr(named, "__qualname__", None) or getattr(named, "__name__", None) or str(named)
    return f"{name}[{', '.join(map(type_name, arguments))}]" if arguments else str(name)
