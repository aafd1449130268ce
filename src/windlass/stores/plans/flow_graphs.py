"""Plans that read flows as a whole."""

from __future__ import annotations

from typing import Final, NamedTuple

from windlass.domain.batch import BATCH_TARGET, FIRST_CONDITION
from windlass.domain.dependencies import BRANCHES, Follows, GroupCounts
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan, Step
from windlass.stores.plans import batches, reads
from windlass.stores.plans.reads import Record

BRANCH_WAYS: Final = frozenset({way.value for way in BRANCHES} | {Follows.GUARDED.value})


class FlowRow(NamedTuple):
    """A job of a flow, as `flow_nodes` reads it. One outside of flows is alone in a flow of its own."""

    job_id: str
    flow_id: str
    parent_id: str | None
    follows: int | None
    group_id: str | None
    target: str
    status: str
    due: int | None
    picked_at: int | None
    reason: str | None
    error_class: str | None
    started_at: int | None
    finished_at: int | None
    signal_key: str | None = None


class FlowRows(NamedTuple):
    """All jobs of a flow, in the order of their ids, and the options of those with branches."""

    jobs: list[FlowRow]
    options: dict[str, str | None]
    batch: GroupCounts | None = None
    """Counts of the children of the batch that the flow begins with; they are not among the jobs."""


def flow_jobs(dialect: Dialect, job_id: str) -> Plan[FlowRows | None]:
    """Return all jobs of the flow of a job; None when there is no such job."""
    found = [FlowRow(*row) for row in (yield Step("flow_nodes", {"id": job_id}))]
    if found:
        branched = sorted({row.parent_id for row in found if row.parent_id is not None and _is_branch(row)})
        rows = (yield Step("options_of_jobs", {"ids": dialect.ids(branched)})) if branched else ()
        batch = (yield from batches.state(dialect, found[0].job_id)) if found[0].target == BATCH_TARGET else None
        return FlowRows(found, dict(rows), None if batch is None else batch.counts)
    stored = yield from reads.get(dialect, job_id)  # an archived flow would be looked for here
    if stored is None:
        return None
    waits = yield Step("waits_of_jobs", {"ids": dialect.ids([job_id])})
    return FlowRows([_alone(stored.job)._replace(signal_key=waits[0][1] if waits else None)], {})


def _is_branch(row: FlowRow) -> bool:
    return row.follows is not None and (row.follows in BRANCH_WAYS or row.follows >= FIRST_CONDITION)


def _alone(job: Record) -> FlowRow:
    state = ("target", "status", "due", "picked_at", "reason", "error_class", "started_at", "finished_at")
    return FlowRow(job["id"], job["id"], None, None, None, *(job[name] for name in state))
