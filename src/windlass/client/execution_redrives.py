"""Where an execution may be started over, and what that calls again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from windlass.errors import InvalidOptionError
from windlass.pipelines.declared_pipelines import DeclaredPipelines
from windlass.pipelines.definition import Definition, StepKind
from windlass.stores.plans.execution_reads import StoredExecution, StoredTransition
from windlass.stores.plans.execution_redrives import Rewind


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedStep:
    """A step that a re-drive calls again, or for the first time."""

    index: int
    name: str
    effect_key: str
    """The key that its calls have had, and will have; with the position of the item after an expansion."""
    attempts: int
    """Number of its attempts so far; 0: it was not called."""


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


def plan_of(declared: DeclaredPipelines, stored: StoredExecution) -> RedrivePlan:
    """Return what a re-drive from where an execution failed would call."""
    definition = definition_of(declared, stored)
    steps = tuple(
        RepeatedStep(
            index=step.index,
            name=step.name,
            effect_key=f"{stored.id}:{step.index}",
            attempts=stored.attempt if step.index == stored.cursor else 0,
        )
        for step in definition.steps[stored.cursor :]
    )
    return RedrivePlan(execution_id=stored.id, status=stored.status, row_version=stored.row_version, steps=steps)


def choose_rewind(
    declared: DeclaredPipelines, stored: StoredExecution, log: Sequence[StoredTransition], from_step: int | str
) -> Rewind:
    """Return where an execution starts over; raise an error that lists the steps where it can."""
    definition = definition_of(declared, stored)
    possible = _possible(definition, stored, log)
    names = {step.name: step.index for step in definition.steps}
    wanted = names.get(from_step) if isinstance(from_step, str) else from_step
    if wanted is None or wanted not in possible:
        listed = ", ".join(f"{definition.steps[index].name} ({index})" for index in sorted(possible))
        raise InvalidOptionError(
            f"from_step must be a step whose input is still stored: {listed}; got {from_step!r}. Items keep their "
            "latest value only, so an execution starts over at the first step, at one before its first expansion, or "
            "where a stage begins"
        )
    return possible[wanted]


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
