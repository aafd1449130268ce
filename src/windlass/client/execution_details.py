"""What is known of one execution beside its fields: how far it is, why it waits, what its steps gave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from windlass.client.execution_views import ExecutionReader, status_of
from windlass.client.pipeline_summaries import names_of
from windlass.domain.clock import from_micros
from windlass.domain.execution_explanation import FailedAttempt, WaitingExecution
from windlass.domain.execution_items import ItemStatus
from windlass.domain.execution_progress import ExecutionProgress, PartProgress, StageProgress, step_name
from windlass.domain.item_paths import readable
from windlass.domain.output_differences import StepOutput
from windlass.pipelines.declared_pipelines import DeclaredPipelines
from windlass.stores.plans.execution_progress import StoredProgress
from windlass.stores.plans.execution_reads import FoundExecution, StoredExecution, StoredTransition

_FIELDS = {
    ItemStatus.READY: "ready",
    ItemStatus.RETRY: "retrying",
    ItemStatus.OUTSIDE: "waiting",
    ItemStatus.DONE: "done",
    ItemStatus.REJECTED: "rejected",
    ItemStatus.FAILED: "failed",
}
_UNFINISHED = (ItemStatus.READY, ItemStatus.RETRY, ItemStatus.OUTSIDE)


def stored_steps(pipelines: Sequence[Mapping[str, Any]], stored: StoredExecution) -> tuple[str, ...]:
    """Return the names of an execution's steps as a node has stored them; none if no node has."""
    key = (stored.pipeline, stored.pipeline_version, stored.definition_hash)
    rows = [row for row in pipelines if (row["name"], row["version"], row["hash"]) == key]
    return names_of(rows[0]["definition"]) if rows else ()


def progress_of(steps: tuple[str, ...], far: StoredProgress) -> ExecutionProgress:
    """Return how far an execution has come."""
    counts: dict[int, dict[str, int]] = {}
    for one in far.items:
        stage = counts.setdefault(one.stage, {})
        field = _FIELDS.get(ItemStatus(one.status))
        if field is not None:
            stage[field] = stage.get(field, 0) + one.number
    parts = tuple(
        PartProgress(
            job_id=UUID(part.job_id),
            stage=part.stage,
            step=step_name(steps, part.segment),
            first=readable(part.lo),
            last=_before(part.hi),
            status=part.status,
            due_at=None if part.due is None else from_micros(part.due),
            node=part.node,
        )
        for part in far.parts
    )
    return ExecutionProgress(
        steps=steps,
        stages=tuple(
            StageProgress(stage=stage, step=step_name(steps, far.made_by.get(stage, -1)), **fields)
            for stage, fields in counts.items()
        ),
        parts=parts,
        parts_waiting=far.parts_left - len(far.parts),
    )


def _before(hi: str) -> str:
    """Return the position of the item before the one that begins the next range; empty if none does."""
    parent, _, last = readable(hi).rpartition(".")
    if not last:
        return ""
    return f"{parent}.{int(last) - 1}" if parent else str(int(last) - 1)


def waiting_execution(
    declared: DeclaredPipelines, found: FoundExecution, steps: tuple[str, ...], far: StoredProgress
) -> WaitingExecution:
    """Return what an explanation depends on."""
    stored = found.stored
    pipeline = declared.get(stored.pipeline, stored.pipeline_version)
    last = far.items[-1].stage if far.items else 0
    left = [one for one in far.items if one.stage == last and one.status in _UNFINISHED]
    step = min((one.cursor for one in left), default=stored.cursor)
    return WaitingExecution(
        id=stored.id,
        pipeline=f"{stored.pipeline}@{stored.pipeline_version}",
        definition_hash=stored.definition_hash,
        known_hash=None if pipeline is None else pipeline.definition.hash,
        status=status_of(found),
        step=step_name(steps, min(step, len(steps) - 1) if steps else step),
        attempt=stored.attempt,
        updated_at=from_micros(stored.updated_at),
        error=stored.error_message,
        items_left=sum(one.number for one in left),
        parts_left=far.parts_left,
        failed=_failed(stored, steps, far),
        outside=sum(one.number for one in left if one.status == ItemStatus.OUTSIDE),
        outside_until=None if stored.outside_until is None else from_micros(stored.outside_until),
    )


def _failed(stored: StoredExecution, steps: tuple[str, ...], far: StoredProgress) -> FailedAttempt | None:
    item, own = far.retried_item, far.retried_step
    if item is not None:
        due = None if item.due is None else from_micros(item.due)
        name = step_name(steps, item.cursor)
        return FailedAttempt(name, item.attempt - 1, item.error, readable(item.path), due)
    if own is not None and own.step == stored.cursor and own.attempt == stored.attempt - 1:
        return FailedAttempt(step_name(steps, own.step), own.attempt, own.error)
    return None


def differing_outputs(
    reader: ExecutionReader,
    stored: StoredExecution,
    steps: tuple[str, ...],
    far: StoredProgress,
    log: Sequence[StoredTransition],
) -> dict[str, StepOutput]:
    """Return what each step of an execution gave last: its value, or how many items there were."""
    counts: dict[int, int] = {}
    for one in far.items:
        if one.status != ItemStatus.EXPANDED:
            counts[one.stage] = counts.get(one.stage, 0) + one.number
    outputs: dict[int, StepOutput] = {}
    for row in log:
        if row.value is not None:
            outputs[row.step] = StepOutput(reader.value(stored, row.type, row.value), row.value)
        elif row.kind == "staged" and row.step == far.made_by.get(row.stage):
            outputs[row.step] = StepOutput(counts.get(row.stage, 0), counted=True)
    return {step_name(steps, index): outputs[index] for index in sorted(outputs)}
