"""The texts in pictures of a flow: names, states, counts, times. Nothing in them acts on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from uuid import UUID

from windlass.cli import phrases
from windlass.domain.control_characters import visible
from windlass.domain.flow_graph import EdgeKind, FlowGraph, FlowGroup, FlowNode
from windlass.domain.flow_outline import Fold, OutlineBranch
from windlass.domain.states import JobStatus

LABELS: Mapping[EdgeKind, str] = {
    "then": "",
    "success": "on success",
    "failure": "on failure",
    "always": "always",
    "when": "when",
}
MOST_OF_A_LABEL = 40
_SHORTEST = 6


def branch_label(branch: OutlineBranch) -> str:
    """Return what a branch is called: `is_low_risk`, `on failure: notify support`; nothing for a plain step."""
    kind, text = LABELS[branch.kind], clean(branch.label)
    text = text if len(text) <= MOST_OF_A_LABEL else f"{text[: MOST_OF_A_LABEL - 1]}…"
    if not text or not kind:
        return kind
    return text if branch.kind == "when" else f"{kind}: {text}"


def clean(text: str | None) -> str:
    """Return a stored text on one line, without control characters."""
    return visible(" ".join((text or "").split()))


def name_of(node: FlowNode) -> str:
    """Return the function of a job without its module: `resize` of `shop.images:resize`."""
    return clean(node.target.rpartition(":")[2])


def detail(node: FlowNode, now: datetime) -> str:
    """Return the details of a job's state: how long it ran, why it failed, when it is due."""
    if node.progress is not None:
        ended = node.progress.completed + node.progress.failed
        failed = f", {node.progress.failed:,} failed" if node.progress.failed else ""
        return f"{ended:,} of {node.progress.total:,} children{failed}"
    match node.status:
        case JobStatus.SUCCEEDED:
            return "" if node.run_ms is None else phrases.span(node.run_ms)
        case JobStatus.RUNNING:
            return "" if node.picked_at is None else phrases.span(_since(node.picked_at, now))
        case JobStatus.FAILED:
            error = clean(node.error_class).rpartition(".")[2]
            return ": ".join(part for part in (clean(node.reason), error) if part)
        case JobStatus.CANCELED:
            return clean(node.reason)
        case JobStatus.WAITING:
            ends = "" if node.due_at is None else f", times out {phrases.distance(node.due_at, now)}"
            return f"for {clean(node.signal_key)}{ends}" if node.signal_key else ""
        case JobStatus.PENDING if node.due_at is not None and node.due_at > now:
            return f"due {phrases.distance(node.due_at, now)}"
        case _:
            return ""


def _since(moment: datetime, now: datetime) -> int:
    return max(int((now - moment).total_seconds() * 1000), 0)


def counted(jobs: Mapping[JobStatus, int]) -> str:
    """Return numbers of jobs by state: `4,100 succeeded, 880 pending`."""
    return ", ".join(f"{count:,} {status.value.lower()}" for status, count in in_order(jobs))


def in_order(jobs: Mapping[JobStatus, int]) -> Iterable[tuple[JobStatus, int]]:
    """Return numbers of jobs by state: what has ended first, then what runs and waits."""
    order = (
        *(JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.CANCELED, JobStatus.RUNNING),
        *(JobStatus.PENDING, JobStatus.WAITING, JobStatus.PAUSED),
    )
    return [(status, jobs[status]) for status in order if jobs.get(status)]


def title(graph: FlowGraph) -> str:
    """Return what is drawn: `flow 0198c0de-…`; a job outside of flows has a picture, too."""
    return f"flow {graph.flow_id}" if len(graph.nodes) > 1 else f"job {graph.flow_id}, in no flow"


def summary(graph: FlowGraph) -> str:
    """Return how many jobs a flow has, and in which states: `3 jobs: 2 succeeded, 1 running`."""
    return f"{phrases.jobs(len(graph.nodes))}: {counted(graph.counts)}"


def group_summary(group: FlowGroup) -> str:
    """Return how far a group is: `2/3 succeeded, 1 failed`."""
    failed = f", {group.failed:,} failed" if group.failed else ""
    return f"{group.succeeded:,}/{group.total:,} succeeded{failed}"


def fold_text(fold: Fold) -> str:
    """Return what is folded: `… and 4,980 more: 4,100 succeeded, 880 pending`."""
    jobs = sum(fold.jobs.values())
    inside = "" if jobs == fold.count else f" ({phrases.jobs(jobs)})"
    return f"… and {fold.count:,} more{inside}: {counted(fold.jobs)}"


def short_ids(graph: FlowGraph) -> dict[UUID, str]:
    """Return the last digits of every job's id: the first ones are the same for all jobs of a flow."""
    digits = [node.id.hex for node in graph.nodes]
    length = next(size for size in range(_SHORTEST, 33) if len({one[-size:] for one in digits}) == len(digits))
    return {node.id: f"…{node.id.hex[-length:]}" for node in graph.nodes}
