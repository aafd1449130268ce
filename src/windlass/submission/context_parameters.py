"""Parameters annotated `JobContext`: not arguments of the job, but filled in where its body runs."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Mapping, Sequence
from inspect import Parameter as Slot
from typing import Any, Final, NamedTuple

from windlass.context import JobContext

_POSITIONAL: Final = (Slot.POSITIONAL_ONLY, Slot.POSITIONAL_OR_KEYWORD)
_VARIABLE: Final = (Slot.VAR_POSITIONAL, Slot.VAR_KEYWORD)


class ContextParameter(NamedTuple):
    """A parameter that takes the context."""

    name: str
    position: int | None
    """Its index among the positional parameters; None if it is keyword-only."""


def context_parameters(signature: inspect.Signature, hints: Mapping[str, Any]) -> tuple[ContextParameter, ...]:
    """Return the context parameters of a signature without `self` or `cls`, in order."""
    slots = list(signature.parameters.values())
    return tuple(
        ContextParameter(slot.name, position if slot.kind in _POSITIONAL else None)
        for position, slot in enumerate(slots)
        if slot.kind not in _VARIABLE and _is_context(hints.get(slot.name))
    )


def without(signature: inspect.Signature, parameters: Sequence[ContextParameter]) -> inspect.Signature:
    """Return the signature as callers see it."""
    names = {parameter.name for parameter in parameters}
    return signature.replace(parameters=[slot for slot in signature.parameters.values() if slot.name not in names])


def with_context(
    parameters: Sequence[ContextParameter], context: JobContext | None, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments with the context added: by position where others precede it, else by name."""
    positional, named = list(args), dict(kwargs)
    for name, position in parameters:
        if position is not None and position <= len(positional):
            positional.insert(position, context)
        else:
            named[name] = context
    return tuple(positional), named


def _is_context(annotation: Any) -> bool:
    """Return whether it is `JobContext`, or `JobContext | None`, which may have a default for other calls."""
    if typing.get_origin(annotation) is typing.Annotated:
        annotation = typing.get_args(annotation)[0]
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return set(typing.get_args(annotation)) == {JobContext, types.NoneType}
    return annotation is JobContext
