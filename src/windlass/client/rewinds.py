"""Where an execution may be started over, and what that calls again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from windlass.domain.execution_items import ItemStatus
from windlass.errors import InvalidOptionError
from windlass.pipelines.declared_pipelines import DeclaredPipelines
from windlass.pipelines.definition import Definition, StepKind
from windlass.stores.plans.execution_progress import StoredProgress
from windlass.stores.plans.execution_reads import StoredExecution, StoredTransition
from windlass.stores.plans.execution_redrives import Rewind

_TO_CALL = (ItemStatus.READY, ItemStatus.RETRY, ItemStatus.OUTSIDE, ItemStatus.FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedStep:
    """A step that a re-drive calls again, or for the first time."""

    index: int
    name: str
    effect_key: str
    """The key that its calls have had, and will have; with the position of the item after an expansion."""
    attempts: int
    """Number of its attempts so far; 0: it was not called."""
    per_item: bool = False
    """Whether it is called for each item, whose position is then part of the effect key."""
    items: int | None = None
    """Number of items that it is called with; None: not known before it runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RedrivePlan:
    """What a re-drive of an execution would do."""

    execution_id: str
    status: str
    row_version: int
    steps: tuple[RepeatedStep, ...]


def definition_of(declared: DeclaredPipelines, stored: StoredExecution) -> Definition:
    """Return the definition of an execution; raise if it is not declared here."""
    pipeline = declared.get(stored.pipeline, stored.pipeline_version)
    if pipeline is None:
        raise InvalidOptionError(
            f"pipeline {stored.pipeline}@{stored.pipeline_version} is not declared in this application, so its steps "
            "are not known; do this where it is declared"
        )
    return pipeline.definition


def plan_of(
    declared: DeclaredPipelines,
    stored: StoredExecution,
    log: Sequence[StoredTransition],
    far: StoredProgress,
    from_step: int | str | None = None,
) -> RedrivePlan:
    """Return what a re-drive from where an execution failed, or from an earlier step, would call."""
    definition = definition_of(declared, stored)
    if definition.hash != stored.definition_hash:
        raise InvalidOptionError(
            f"pipeline {stored.pipeline}@{stored.pipeline_version} is declared here with other steps than those of "
            f"execution {stored.id}, so what it calls is not known; do this where it has them"
        )
    first = stored.cursor if from_step is None else choose_rewind(declared, stored, log, from_step).step
    per_item = _steps_per_item(definition)
    steps = tuple(
        RepeatedStep(
            index=step.index,
            name=step.name,
            effect_key=f"{stored.id}:{step.index}",
            attempts=_attempts(log, step.index),
            per_item=step.index in per_item,
            items=_items(definition, far, stored.cursor, step.index) if from_step is None else None,
        )
        for step in definition.steps[first:]
    )
    return RedrivePlan(execution_id=stored.id, status=stored.status, row_version=stored.row_version, steps=steps)


def _steps_per_item(definition: Definition) -> frozenset[int]:
    """Return the steps that are called for each item: those behind an expansion, up to a reduction."""
    found, streams = set(), False
    for step in definition.steps:
        if streams and not step.kind.takes_stream:
            found.add(step.index)
        streams = step.kind.gives_stream or (streams and step.kind is not StepKind.REDUCE)
    return frozenset(found)


def _attempts(log: Sequence[StoredTransition], step: int) -> int:
    """Return how often a step was called; of a step that items run through, how often the one that failed was."""
    rows = [row for row in log if row.step == step]
    called = sum(1 for row in rows if row.kind in ("step", "retry", "parked") or row.run_us is not None)
    return called or max((row.attempt for row in rows if row.kind == "ended" and row.error_class), default=0)


def _items(definition: Definition, far: StoredProgress, cursor: int, step: int) -> int | None:
    """Return how many items of the present stage have not passed a step; None before and behind them."""
    stage = far.items[-1].stage if far.items else None
    reached = next((one for one in definition.segments() if one.first <= cursor < one.end), None)
    if stage is None or reached is None or not cursor <= step < reached.end or step not in _steps_per_item(definition):
        return None
    return sum(one.number for one in far.items if one.stage == stage and one.cursor <= step and one.status in _TO_CALL)


def choose_rewind(
    declared: DeclaredPipelines, stored: StoredExecution, log: Sequence[StoredTransition], from_step: int | str
) -> Rewind:
    """Return where an execution starts over; raise an error that lists the steps where it can."""
    definition = definition_of(declared, stored)
    possible = _possible(definition, stored, log)
    names = {step.name: step.index for step in definition.steps}
    wanted = names.get(from_step) if isinstance(from_step, str) else from_step
    if not isinstance(wanted, int) or isinstance(wanted, bool) or wanted not in possible:
        listed = ", ".join(f"{definition.steps[index].name} ({index})" for index in sorted(possible))
        raise InvalidOptionError(
            f"from_step must be a step whose input is still stored: {listed}; got {from_step!r}. Items keep their "
            "latest value only, so an execution starts over at the first step, at one before its first expansion, or "
            "where a stage begins"
        )
    return possible[wanted]._replace(reached=reached_by_items(definition, stored.cursor))


def reached_by_items(definition: Definition, cursor: int) -> int:
    """Return the last step that items of an execution may have been given to."""
    steps = definition.steps
    first = cursor + 1 if cursor < len(steps) and steps[cursor].kind.gives_stream else cursor
    return next((one.end - 1 for one in definition.segments() if one.first <= first < one.end), first)


def _possible(definition: Definition, stored: StoredExecution, log: Sequence[StoredTransition]) -> dict[int, Rewind]:
    """Return the steps whose input is stored: up to the first expansion, and those that take a complete stage."""
    found: dict[int, Rewind] = {}
    first = log[0].step if log and log[0].kind == "submitted" else 0  # of a re-driven reject: that of the item
    for step in definition.steps[first:]:
        if step.index > stored.cursor:
            break
        found[step.index] = Rewind(step.index)
        if step.kind in (StepKind.EXPAND, StepKind.TRANSFORM):
            break
    complete = {row.step + 1: row.stage for row in log if row.kind == "staged"}
    for index, stage in complete.items():
        if index < len(definition.steps) and index <= stored.cursor and definition.steps[index].kind.takes_stream:
            found[index] = Rewind(index, stage)
    return found
