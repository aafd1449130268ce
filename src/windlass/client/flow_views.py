"""Conversion of the rows of a flow to its public value."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Final, cast
from uuid import UUID

from windlass.domain.clock import from_micros
from windlass.domain.dependencies import Follows
from windlass.domain.flow_graph import EdgeKind, FlowEdge, FlowGraph, FlowGroup, FlowNode
from windlass.domain.signal import deadline_or_none
from windlass.domain.states import JobStatus
from windlass.stores.plans.flow_graphs import FlowRow

KINDS: Final[dict[int, EdgeKind]] = {kind.value: cast("EdgeKind", kind.name.lower()) for kind in Follows}


def graph_of(rows: Sequence[FlowRow]) -> FlowGraph:
    """Return the jobs of a flow as a graph.

    Groups are counted from their members: what is stored of a group may be a moment behind them.
    """
    nodes = tuple(_node(row) for row in rows)
    members: dict[UUID, list[FlowNode]] = defaultdict(list)
    for node in nodes:
        if node.group_id is not None:
            members[node.group_id].append(node)
    edges = tuple(
        FlowEdge(parent_id=UUID(row.parent_id), child_id=UUID(row.job_id), kind=KINDS.get(row.follows or 0, "then"))
        for row in rows
        if row.parent_id is not None
    )
    groups = tuple(_group(key, members[key]) for key in sorted(members))
    return FlowGraph(flow_id=UUID(rows[0].flow_id), nodes=nodes, edges=edges, groups=groups)


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
