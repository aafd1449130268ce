"""A pipeline as it runs: its steps, the table of the types that values may have, and the hash that identifies it."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, NamedTuple

from windlass.domain.key_policy import KeyPolicy
from windlass.domain.step_options import StepOptions
from windlass.pipelines.pipeline_options import PipelineOptions
from windlass.pipelines.publication_declaration import Publication
from windlass.pipelines.step_types import is_anything, literals_of, members, type_name, unwrapped
from windlass.pipelines.type_rules import check_steps, input_type
from windlass.pipelines.value_types import TypeChoice, classes_of
from windlass.submission.context_parameters import ContextParameter
from windlass.submission.signature import CallSpec

INPUT: Final = -1
"""The index under which `type_of` knows the input of a pipeline."""


class StepKind(StrEnum):
    """What a step does with items."""

    STEP = "step"
    """One item becomes one."""
    EXPAND = "expand"
    """One item becomes many."""
    REDUCE = "reduce"
    """All items become one."""
    TRANSFORM = "transform"
    """All items become other ones."""
    TAP = "tap"
    """Items pass on unchanged; the output is ignored."""
    AWAIT = "await_external"
    """The output is a request to the outside; its answer replaces the item."""

    @property
    def takes_stream(self) -> bool:
        """Whether it is called once with all items."""
        return self in (StepKind.REDUCE, StepKind.TRANSFORM)

    @property
    def gives_stream(self) -> bool:
        """Whether its output is iterated over."""
        return self in (StepKind.EXPAND, StepKind.TRANSFORM)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PipelineStep:
    """One step of a pipeline."""

    index: int
    name: str
    kind: StepKind
    function: Callable[..., Any]
    is_coroutine: bool
    """Whether a call of the function is awaited."""
    is_async: bool
    """Whether it runs on the event loop."""
    takes: Any
    """The type of one item, or of one element of the stream; Any if it is not annotated."""
    gives: Any
    """The type of the output, or of one element of it; Any for a tap; of a step that waits outside, of the answer."""
    contexts: tuple[ContextParameter, ...]
    """The parameters that take the context."""
    has_input: bool
    """Whether it has a parameter for its input."""
    options: StepOptions
    spec: CallSpec
    async_stream: bool = False
    """Whether it takes a stream as an async iterable."""
    wants_list: bool = False
    """Whether it takes a stream as a list."""
    request: Any = Any
    """What a step that waits outside shows there: the type of its output."""
    wait: float = 0.0
    """How many seconds such a step waits for its answer."""

    @property
    def replaces_stream(self) -> bool:
        """Whether it must take all items."""
        return self.kind.takes_stream

    @property
    def passes_input_on(self) -> bool:
        """Whether its output is ignored."""
        return self.kind is StepKind.TAP


class Segment(NamedTuple):
    """Consecutive steps that run under one claim of the same limits."""

    first: int
    end: int
    """The index behind its last step."""
    lane_key: tuple[str | None, str | None]
    """The circuit and the resource of its steps."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Definition:
    """A pipeline that can run: nothing of it changes any more. Made by `define`."""

    name: str
    version: str
    steps: tuple[PipelineStep, ...]
    options: PipelineOptions
    types: tuple[Any, ...]
    """Every type that a stored value may have; values are stored with the index of theirs. The first is the input's."""
    hash: str
    """SHA-256 of names, kinds, order and types of the steps, as 64 hex digits."""
    target: str
    """The target of the jobs that run executions."""
    items_target: str
    """The target of the jobs that run items of executions."""
    result_type: Any
    """The type of the result: of the last value, or of the list of the last items; Any if there are several."""
    ends_in_items: bool
    """Whether its result is the list of its last items."""
    publications: tuple[Publication, ...]
    """What its last items are handed over as."""
    _segments: tuple[Segment, ...] = field(repr=False)
    _inputs: tuple[TypeChoice, ...] = field(repr=False)
    _outputs: tuple[TypeChoice, ...] = field(repr=False)
    """What each step takes and gives; the last of the outputs is the input of the pipeline."""
    _numbers: tuple[tuple[int, ...], ...] = field(repr=False)
    """The numbers of the types of each output in the table."""
    _any: TypeChoice = field(repr=False)

    @property
    def input_type(self) -> Any:
        """The type of the input."""
        return self.types[0]

    @property
    def awaits(self) -> bool:
        """Whether any of its steps waits for an answer from outside."""
        return any(step.kind is StepKind.AWAIT for step in self.steps)

    @property
    def dlq(self) -> bool:
        """Whether a terminal failure becomes a dead letter."""
        return self.options.dlq

    @property
    def max_rejected(self) -> int | float | None:
        """Number or share of rejected items that ends an execution."""
        return self.options.max_rejected

    @property
    def include_payload(self) -> bool | None:
        """Whether rejects keep their item; None: the setting decides."""
        return self.options.include_payload

    @property
    def subscribe(self) -> str | None:
        """The publication whose items become executions."""
        return self.options.subscribe

    @property
    def key_policy(self) -> KeyPolicy:
        """Where the key of an execution comes from."""
        return self.options.key_policy

    def accepts(self, step: PipelineStep, value: Any) -> bool:
        """Return whether a step takes an item; one that it does not take passes on unchanged."""
        return self._inputs[step.index].of(value) is not None

    def type_of(self, step_index: int, value: Any) -> int:
        """Return the number of the type of a step's output; of the input, if the index is `INPUT` (-1).

        Raises `TypeError` if the value has none of the declared types.
        """
        chosen = self._outputs[step_index].of(value)
        if chosen is not None:
            return self._numbers[step_index][chosen]
        where = f"pipeline {self.name}@{self.version}"
        if step_index == INPUT:
            raise TypeError(f"{where} takes {type_name(self.input_type)}, got {_shown(value)}; pass such a value")
        step = self.steps[step_index]
        raise TypeError(
            f"{where}: step {step.name!r} is annotated to give {type_name(step.gives)}, got {_shown(value)}; "
            "correct the annotation, or what it returns"
        )

    def numbers_of(self, step_index: int) -> tuple[int, ...]:
        """Return the numbers of the types that a step's output may have."""
        return self._numbers[step_index]

    def number_of(self, value: Any) -> int | None:
        """Return the number of the type of any value of the pipeline; None if it has none of its types."""
        return self._any.of(value)

    def segments(self) -> tuple[Segment, ...]:
        """Return the steps in segments: runs of steps per item with the same limits; a reduce or transform alone."""
        return self._segments


def _segments_of(steps: Sequence[PipelineStep]) -> tuple[Segment, ...]:
    found: list[Segment] = []
    joinable = False
    for step in steps:
        lane_key = (step.options.circuit, step.options.resource)
        alone = step.kind.takes_stream
        if joinable and not alone and found[-1].lane_key == lane_key:
            found[-1] = found[-1]._replace(end=step.index + 1)
        else:
            found.append(Segment(step.index, step.index + 1, lane_key))
        joinable = not alone
    return tuple(found)


_KEEPS_NUMBER: Final = (StepKind.STEP, StepKind.TAP, StepKind.AWAIT)
"""Kinds of steps that give as many items as they take."""


def _ends_in_items(steps: Sequence[PipelineStep]) -> bool:
    last = next((step for step in reversed(steps) if step.kind not in _KEEPS_NUMBER), None)
    return last is not None and last.kind is not StepKind.REDUCE


def _result_type(steps: Sequence[PipelineStep], name: str) -> Any:
    """Return the type of the last value, or of the list of the last items; Any if there are several."""
    ends = check_steps(steps, name)
    single: Any = ends[0].type if len(ends) == 1 else Any
    return list[single] if _ends_in_items(steps) else single


def define(
    name: str,
    version: str,
    steps: Sequence[PipelineStep],
    options: PipelineOptions,
    publications: Sequence[Publication] = (),
) -> Definition:
    """Return the definition of a pipeline whose steps are checked."""
    whole = input_type(steps)
    alternatives = [*(() if step.kind is StepKind.TAP else _alternatives(step.gives) for step in steps)]
    alternatives.append(_alternatives(whole))
    types: list[Any] = [whole]
    for kind in (*alternatives[INPUT], *(kind for choices in alternatives[:INPUT] for kind in choices)):
        if kind not in types:
            types.append(kind)
    digest = definition_hash(steps)
    target = f"pipeline/{name}@{version}#{digest[:12]}"
    return Definition(
        name=name,
        version=version,
        steps=tuple(steps),
        options=options,
        types=tuple(types),
        hash=digest,
        target=target,
        items_target=f"{target}/items",
        result_type=_result_type(steps, name),
        ends_in_items=_ends_in_items(steps),
        publications=tuple(publications),
        _segments=_segments_of(steps),
        _inputs=tuple(TypeChoice(members(step.takes)) for step in steps),
        _outputs=tuple(TypeChoice(choices) for choices in alternatives),
        _numbers=tuple(tuple(types.index(kind) for kind in choices) for choices in alternatives),
        _any=TypeChoice(types),
    )


def definition_hash(steps: Sequence[PipelineStep]) -> str:
    """Return the SHA-256 of what an execution depends on: names, kinds, order and types of steps."""
    content = [
        [step.name, step.kind.value, type_name(step.takes), "" if step.passes_input_on else type_name(step.gives)]
        for step in steps
    ]
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


def _alternatives(annotation: Any) -> tuple[Any, ...]:
    """Return the types that are distinguished by the class of a value: members of one class are one."""
    several = members(annotation)
    if len(several) < 2 or any(is_anything(member) for member in several):
        return (annotation,) if several else ()
    by_class: dict[Any, Any] = {}
    for member in several:
        by_value = literals_of(member) is not None or hasattr(unwrapped(member), "__required_keys__")
        key = type_name(member) if by_value else classes_of(member) or type_name(member)
        by_class[key] = by_class[key] | member if key in by_class else member
    return tuple(by_class.values())


def _shown(value: object) -> str:
    text = repr(value)
    return f"{text if len(text) <= 80 else f'{text[:77]}...'} ({type(value).__name__})"
