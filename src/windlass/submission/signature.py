"""The signature of a target, prepared once: how its arguments are bound, encoded and decoded."""

import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter as Slot
from typing import Any, Final
from weakref import WeakKeyDictionary

from windlass.errors import ConfigurationError, SerializationError
from windlass.submission.context_parameters import ContextParameter, context_parameters, without
from windlass.submission.values import Envelope, ValueCodec, envelope_reader, value_codec

_NEVER: Final = 1 << 30


class Parameter:
    """One parameter and how its values are stored; the last three fields belong to the codec, kept here for speed."""

    __slots__ = ("annotation", "exact", "floats", "name", "read", "value")

    def __init__(self, name: str, annotation: Any) -> None:
        self.name = name
        self.annotation = annotation
        self.value: ValueCodec = value_codec(annotation)
        self.exact = self.value.exact
        self.floats = self.value.floats
        self.read = self.value.read

    def __repr__(self) -> str:
        return f"Parameter({self.name!r}, {self.annotation!r})"


@dataclass(frozen=True, slots=True, eq=False)
class CallSpec:
    """How a target is called, without `self` or `cls`; made by `call_spec`. Satisfies `spi.CallShape`."""

    name: str
    signature: inspect.Signature
    positional: tuple[Parameter, ...]
    keyword: Mapping[str, Parameter]
    var_positional: Parameter | None
    var_keyword: Parameter | None
    is_coroutine: bool
    returns: Any
    required: frozenset[str]
    fewest: int
    """Number of positional arguments that is enough; unreachable if a parameter is keyword-only."""
    read_all: Callable[[str], Envelope] | None
    """Decoder of a call whose arguments are all positional; faster."""
    contexts: tuple[ContextParameter, ...] = ()
    """Parameters that are filled in where the body runs; not among the others."""

    def bind_check(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Raise `TypeError`, naming the function and its signature, unless it could be called like this."""
        if not kwargs:
            if self.fewest <= len(args) <= len(self.positional):
                return
        elif not args and self.required <= kwargs.keys() <= self.keyword.keys():
            return
        try:
            self.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.name}(): {error}; it is declared as {self.name}{self.signature}") from None


_specs: WeakKeyDictionary[Callable[..., Any], dict[bool, CallSpec]] = WeakKeyDictionary()


def call_spec(function: Callable[..., Any], *, skip_first: bool = False) -> CallSpec:
    """Return the call spec of a function; with `skip_first`, of a method without its `self` or `cls`.

    Annotations are resolved here, at the first use and not at the definition, so that they may name classes that come
    later in the module. Raises `SerializationError` if they still cannot be resolved.
    """
    try:
        known = _specs.setdefault(function, {})
    except TypeError:  # a callable object without weak references cannot be cached
        return _build(function, skip_first=skip_first)
    spec = known.get(skip_first)
    if spec is None:
        spec = known[skip_first] = _build(function, skip_first=skip_first)
    return spec


def _build(function: Callable[..., Any], *, skip_first: bool) -> CallSpec:
    name = getattr(function, "__qualname__", None) or repr(function)
    signature = _signature(function, name)
    if skip_first:
        signature = _without_first(signature, name)
    hints = _hints(function, name)
    contexts = context_parameters(signature, hints)
    if contexts:
        signature = without(signature, contexts)
    slots = signature.parameters.values()
    parameters = {slot.name: Parameter(slot.name, hints.get(slot.name, Any)) for slot in slots}

    def of_kind(*kinds: Any) -> list[Parameter]:
        return [parameters[slot.name] for slot in slots if slot.kind in kinds]

    required = {slot.name for slot in slots if slot.default is Slot.empty and slot.kind not in _VARIABLE}
    positional = of_kind(Slot.POSITIONAL_ONLY, Slot.POSITIONAL_OR_KEYWORD)
    by_name = required - {item.name for item in positional}
    return CallSpec(
        name=name,
        signature=signature,
        positional=tuple(positional),
        keyword={item.name: item for item in of_kind(Slot.POSITIONAL_OR_KEYWORD, Slot.KEYWORD_ONLY)},
        var_positional=next(iter(of_kind(Slot.VAR_POSITIONAL)), None),
        var_keyword=next(iter(of_kind(Slot.VAR_KEYWORD)), None),
        is_coroutine=inspect.iscoroutinefunction(function),
        returns=hints.get("return", Any),
        required=frozenset(required),
        fewest=_NEVER if by_name else len(required),
        read_all=None if by_name else envelope_reader([item.value for item in positional]),
        contexts=contexts,
    )


_VARIABLE: Final = (Slot.VAR_POSITIONAL, Slot.VAR_KEYWORD)


def _signature(function: Callable[..., Any], name: str) -> inspect.Signature:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise SerializationError(
            f"{name}: its signature is not known, so its arguments cannot be checked ({error}); "
            "wrap it in a Python function and enqueue that"
        ) from error


def _without_first(signature: inspect.Signature, name: str) -> inspect.Signature:
    slots = list(signature.parameters.values())
    if not slots or slots[0].kind in (Slot.KEYWORD_ONLY, Slot.VAR_KEYWORD):
        raise ConfigurationError(f"{name} is a method without self; add self, or decorate it with @staticmethod")
    if slots[0].kind is not Slot.VAR_POSITIONAL:
        slots = slots[1:]
    return signature.replace(parameters=slots)


def _hints(function: Callable[..., Any], name: str) -> dict[str, Any]:
    if getattr(function, "__annotations__", None) is None:  # a callable object: its own annotations are elsewhere
        function = type(function).__call__
    try:
        return typing.get_type_hints(function, include_extras=True)
    except Exception as error:
        raise SerializationError(
            f"{name}: its annotations cannot be resolved ({type(error).__name__}: {error}); import what they name at "
            "the top of the module, not only under TYPE_CHECKING, or correct them"
        ) from error
