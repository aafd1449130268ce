"""Conversion of the rows of a flow to its public value."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final
from uuid import UUID

from windlass.domain.batch import FIRST_CONDITION, BatchProgress
from windlass.domain.clock import from_micros
from windlass.domain.dependencies import Follows, GroupCounts
from windlass.domain.flow_graph import EdgeKind, FlowEdge, FlowGraph, FlowGroup, FlowNode
from windlass.domain.signal import deadline_or_none
from windlass.domain.states import JobStatus
from windlass.errors import SerializationError
from windlass.stores.plans.flow_graphs import FlowRow
from windlass.submission.stored_options import from_text

OTHERWISE: Final = "otherwise"
"""What is shown for a choice without a predicate."""
KINDS: Final[dict[int, EdgeKind]] = {
    Follows.THEN.value: "then",
    Follows.SUCCESS.value: "success",
    Follows.FAILURE.value: "failure",
    Follows.ALWAYS.value: "always",
    Follows.DECIDED.value: "when",
    Follows.GUARDED.value: "when",
}


def graph_of(rows: Sequence[FlowRow], options: Mapping[str, str | None], batch: GroupCounts | None = None) -> FlowGraph:
    """Return the jobs of a flow as a graph; `options` are the stored ones of jobs with branches.

    A `batch` at its beginning is one node with its counts; its children are no nodes.

    Groups are counted from their members: what is stored of a group may be a moment behind them.
    """
    nodes = tuple(_node(row) for row in rows)
    if batch is not None:
        nodes = (replace(nodes[0], progress=BatchProgress.of(batch)), *nodes[1:])
    members: dict[UUID, list[FlowNode]] = defaultdict(list)
    for node in nodes:
        if node.group_id is not None:
            members[node.group_id].append(node)
    labels = _labels(options.values())
    edges = tuple(
        FlowEdge(
            parent_id=UUID(row.parent_id),
            child_id=UUID(row.job_id),
            kind=_kind(row),
            label=labels.get(row.job_id, "") or _condition(row, options),
        )
        for row in rows
        if row.parent_id is not None
    )
    groups = tuple(_group(key, members[key]) for key in sorted(members))
    return FlowGraph(flow_id=UUID(rows[0].flow_id), nodes=nodes, edges=edges, groups=groups)


def _kind(row: FlowRow) -> EdgeKind:
    return "when" if (row.follows or 0) >= FIRST_CONDITION else KINDS.get(row.follows or 0, "then")


def _condition(row: FlowRow, options: Mapping[str, str | None]) -> str:
    """Return the condition on the counts of a batch under which a job follows it."""
    if row.parent_id is None or (number := (row.follows or 0) - FIRST_CONDITION) < 0:
        return ""
    try:
        flow = from_text(options.get(row.parent_id)).flow
    except SerializationError:  # damaged: it is shown without
        return ""
    conditions = () if flow is None or flow.batch is None else flow.batch.conditions
    if number >= len(conditions):
        return ""
    kind, bound = conditions[number]
    return f"success rate ≥ {bound:g}" if kind == "rate" else f"failures ≥ {bound:g}"


def _labels(options: Iterable[str | None]) -> dict[str, str]:
    """Return what branches are called, by their first job."""
    found: dict[str, str] = {}
    for text in options:
        try:
            flow = from_text(text).flow
        except SerializationError:  # damaged: it is shown without
            continue
        for branch in () if flow is None else flow.branches:
            name = (branch.predicate or "").rpartition(":")[2]
            found[branch.child_id] = branch.description or name or ("" if branch.choice is None else OTHERWISE)
    return found


def _node(row: FlowRow) -> FlowNode:
    known = row.status in JobStatus.__members__
    return FlowNode(
        id=UUID(row.job_id),
        target=row.target,
        status=JobStatus(row.status) if known else JobStatus.PAUSED,  # damaged: as `app.get` shows it
        reason=row.reason,
        error_class=row.error_class,
        group_id=None if row.group_id is None else UUID(row.group_id),
        due_at=_moment(deadline_or_none(row.due)),
        picked_at=_moment(row.picked_at),
        started_at=_moment(row.started_at),
        finished_at=_moment(row.finished_at),
        signal_key=row.signal_key,
    )


def _group(key: UUID, members: Sequence[FlowNode]) -> FlowGroup:
    succeeded = sum(node.status is JobStatus.SUCCEEDED for node in members)
    ended = sum(node.finished_at is not None for node in members)  # a paused dead letter has ended
    return FlowGroup(
        id=key,
        total=len(members),
        succeeded=succeeded,
        failed=ended - succeeded,
        members=tuple(node.id for node in members),
    )


def _moment(value: int | None) -> datetime | None:
    return from_micros(value) if isinstance(value, int) else None  # a damaged one hides neither its job nor others
