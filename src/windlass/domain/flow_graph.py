"""A flow as users see it: its jobs, what follows what, and its groups."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from windlass.domain.batch import BatchProgress
from windlass.domain.dependencies import NOT_CHOSEN
from windlass.domain.states import TERMINAL, JobStatus

EdgeKind = Literal["then", "success", "failure", "always", "when"]
"""After which end of its parent a job runs; `success`, `failure` and `when` (a predicate holds) are branches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowNode:
    """A job of a flow. Times are aware UTC datetimes."""

    id: UUID
    target: str
    status: JobStatus
    reason: str | None = None
    """Why it failed or was canceled: `upstream_failed`, `not_chosen` …"""
    error_class: str | None = None
    group_id: UUID | None = None
    """The group that it counts for."""
    due_at: datetime | None = None
    """None: it follows a job or group that has not ended."""
    picked_at: datetime | None = None
    started_at: datetime | None = None
    """When its last attempt began; None before its end."""
    finished_at: datetime | None = None
    signal_key: str | None = None
    """The key of the signal that it awaits, or awaited; while it is WAITING, `due_at` is the deadline."""
    progress: BatchProgress | None = None
    """For a batch: the progress of its children, which are not nodes."""

    @property
    def run_ms(self) -> int | None:
        """How long its last attempt ran, in milliseconds; None before its end, and if it never ran."""
        if self.started_at is None or self.finished_at is None:
            return None
        return max(int((self.finished_at - self.started_at).total_seconds() * 1000), 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowEdge:
    """One job following another, or a group: `parent_id` is then the id of the group."""

    parent_id: UUID
    child_id: UUID
    kind: EdgeKind
    label: str = ""
    """For a branch: its description, else the name of its predicate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowGroup:
    """A group of a flow: what follows it waits for all of its members."""

    id: UUID
    total: int
    succeeded: int
    failed: int
    """Members that ended otherwise: FAILED or CANCELED."""
    members: tuple[UUID, ...]
    """The jobs that count, in the order of their results: of a chain as a member, its last job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowGraph:
    """A whole flow as it is now, from `handle.graph()` and `app.graph(id)`; the same for each of its jobs.

    ```python
    graph = handle.graph()
    for job in graph.nodes:
        print(job.target, job.status)
    ```
    """

    flow_id: UUID
    """The id of its first job."""
    nodes: tuple[FlowNode, ...]
    """Its jobs, parents before those that follow them."""
    edges: tuple[FlowEdge, ...]
    groups: tuple[FlowGroup, ...]

    @property
    def counts(self) -> dict[JobStatus, int]:
        """How many of its jobs are in each state; states without a job are left out."""
        return counts_of(self.nodes)

    @property
    def ended(self) -> bool:
        """Whether all of its jobs have ended."""
        return all(node.status in TERMINAL for node in self.nodes)

    @property
    def succeeded(self) -> bool:
        """Whether all of its jobs have succeeded, except for those whose case did not occur."""
        return all(node.status is JobStatus.SUCCEEDED or node.reason == NOT_CHOSEN for node in self.nodes)


def counts_of(nodes: tuple[FlowNode, ...] | list[FlowNode]) -> dict[JobStatus, int]:
    """Return how many jobs are in each state, in the order of the states."""
    counted = Counter(node.status for node in nodes)
    return {status: counted[status] for status in JobStatus if counted[status]}
