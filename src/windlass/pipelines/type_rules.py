"""Which types reach which step: the stream's type is a set, of which every step takes a part and adds its output.

A step with input I takes those members that are an I (whole), or may be one (in part); if there is none, the step would
never run, which is an error. What it takes whole leaves the set, its output joins it; the rest passes on unchanged.
"""

import inspect
import typing
from collections.abc import Sequence
from enum import IntEnum
from typing import Any, NamedTuple, Protocol

from windlass.errors import ConfigurationError
from windlass.pipelines.step_types import (
    class_of,
    is_anything,
    literals_of,
    members,
    protocol_members,
    protocol_of,
    type_name,
    unwrapped,
)
from windlass.pipelines.value_types import classes_of, fits

_STANDARD = ("builtins", "collections", "collections.abc")


class TypeShare(IntEnum):
    """How much of one type a step takes."""

    NONE = 0
    PART = 1
    WHOLE = 2


class StreamMember(NamedTuple):
    """One type of the stream, and what puts it there."""

    type: Any
    source: str
    """E.g. "step 'parse'", or "the input"."""


class TypedStep(Protocol):
    """What the rules read of a step."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def takes(self) -> Any:
        """The type of one item."""
        ...

    @property
    def gives(self) -> Any:
        """The type of one output."""
        ...

    @property
    def replaces_stream(self) -> bool:
        """Whether it must take all items: a reduce or transform."""
        ...

    @property
    def passes_input_on(self) -> bool:
        """Whether its output is ignored: a tap."""
        ...


Stream = tuple[StreamMember, ...]


def input_type(steps: Sequence[TypedStep]) -> Any:
    """Return the type of a pipeline's input: what the first step takes; taps that take anything do not decide."""
    for step in steps:
        if not (step.passes_input_on and is_anything(step.takes)):
            return step.takes
    return Any


def check_steps(steps: Sequence[TypedStep], where: str) -> Stream:
    """Return the type of the stream behind the last step; raise where one does not fit what precedes it."""
    stream: Stream = tuple(StreamMember(kind, "the input") for kind in members(input_type(steps)))
    for step in steps:
        stream = stream_after(stream, step, where)
    return stream


def stream_after(stream: Stream, step: TypedStep, where: str) -> Stream:
    """Return the type of the stream behind a step; `where` names the pipeline in errors."""
    shares = [share(member.type, step.takes) for member in stream]
    if not any(shares) and not is_anything(step.takes):
        raise _mismatch(stream, step, where)
    if step.passes_input_on:
        return stream
    outputs = tuple(StreamMember(kind, f"step {step.name!r}") for kind in members(step.gives))
    if step.replaces_stream:
        _refuse_part(stream, shares, step, where)
        return outputs
    kept = tuple(member for member, taken in zip(stream, shares, strict=True) if taken is not TypeShare.WHOLE)
    known = [member.type for member in kept]
    return kept + tuple(output for output in outputs if output.type not in known)


def share(given: Any, taken: Any) -> TypeShare:
    """Return how much of the type `given` a step takes whose input is annotated `taken`."""
    if is_anything(taken):
        return TypeShare.WHOLE
    if is_anything(given):
        return TypeShare.PART
    several = members(given)
    if len(several) > 1:
        found = [share(member, taken) for member in several]
        return (
            TypeShare.WHOLE
            if all(one is TypeShare.WHOLE for one in found)
            else TypeShare(min(max(found), TypeShare.PART))
        )
    return max((_share_of_member(given, member) for member in members(taken)), default=TypeShare.NONE)


def _share_of_member(given: Any, taken: Any) -> TypeShare:
    if is_anything(taken):
        return TypeShare.WHOLE
    values = literals_of(given)
    if values is not None:
        found = [fits(taken, value) for value in values]
        return TypeShare.WHOLE if all(found) else TypeShare.PART if any(found) else TypeShare.NONE
    choices = literals_of(taken)
    if choices is not None:
        return TypeShare.PART if any(fits(given, value) for value in choices) else TypeShare.NONE
    protocol = protocol_of(taken)
    if protocol is not None:
        return _share_of_protocol(given, protocol)
    if typing.is_typeddict(unwrapped(taken)):
        return _share_of_typed_dict(given, unwrapped(taken))
    return _share_of_class(given, taken)


def _share_of_class(given: Any, taken: Any) -> TypeShare:
    inner, outer = class_of(given), class_of(taken)
    if outer is None or inner is None:
        return TypeShare.PART
    if not _arguments_agree(given, inner, taken, outer):
        return TypeShare.NONE
    if any(_is_subclass(inner, one) for one in classes_of(taken)):
        return TypeShare.WHOLE
    may_have_both = inspect.isabstract(inner) and inspect.isabstract(outer)
    return TypeShare.PART if _is_subclass(outer, inner) or may_have_both else TypeShare.NONE


def _arguments_agree(given: Any, inner: type, taken: Any, outer: type) -> bool:
    """Return whether the arguments of two generic types agree, as far as they mean the same."""
    mine, theirs = typing.get_args(unwrapped(given)), typing.get_args(unwrapped(taken))
    comparable = inner is outer or (inner.__module__ in _STANDARD and outer.__module__ in _STANDARD)
    if not comparable or len(mine) != len(theirs) or ... in (*mine, *theirs):
        return True
    pairs = [pair for pair in zip(mine, theirs, strict=True) if not any(isinstance(one, list) for one in pair)]
    return all(share(one, other) is not TypeShare.NONE for one, other in pairs)


def _share_of_protocol(given: Any, protocol: type) -> TypeShare:
    """Methods are on the class; other members may be set by its code, where nothing can be known."""
    kind = protocol_of(given) or class_of(given)
    if kind is None:
        return TypeShare.PART
    known = {name for base in kind.__mro__ for name in (*vars(base), *inspect.get_annotations(base))}
    missing = {name: is_method for name, is_method in protocol_members(protocol).items() if name not in known}
    if any(missing.values()):
        return TypeShare.PART if protocol_of(given) else TypeShare.NONE
    return TypeShare.PART if missing else TypeShare.WHOLE


def _share_of_typed_dict(given: Any, taken: Any) -> TypeShare:
    if not typing.is_typeddict(unwrapped(given)):
        return _share_of_class(given, dict) and TypeShare.PART
    mine, theirs = unwrapped(given), taken
    if theirs.__required_keys__ <= mine.__required_keys__:
        return TypeShare.WHOLE
    names, others = set(mine.__annotations__), set(theirs.__annotations__)
    return TypeShare.PART if names <= others or others <= names else TypeShare.NONE


def _is_subclass(inner: type, outer: type) -> bool:
    try:
        return issubclass(inner, outer)
    except TypeError:  # a class whose own code refuses the question
        return False


def _mismatch(stream: Stream, step: TypedStep, where: str) -> ConfigurationError:
    given = " and ".join(f"{member.source} gives {type_name(member.type)}" for member in stream)
    wanted = type_name(step.takes)
    return ConfigurationError(
        f"{where}: step {step.name!r} takes {wanted}, but {given or 'the steps before it give nothing'}, so no item "
        f"would reach it; correct one of the annotations, or add a step before it that gives {wanted}"
    )


def _refuse_part(stream: Stream, shares: Sequence[TypeShare], step: TypedStep, where: str) -> None:
    for member, taken in zip(stream, shares, strict=True):
        if taken is TypeShare.WHOLE or is_anything(member.type):
            continue
        raise ConfigurationError(
            f"{where}: step {step.name!r} must take the whole stream, but takes elements of type "
            f"{type_name(step.takes)}, and {member.source} gives {type_name(member.type)}; take "
            f"{type_name(step.takes)} | {type_name(member.type)}, or add a step before it that takes "
            f"{type_name(member.type)}"
        )
