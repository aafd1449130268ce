"""Plans that read flows as a whole."""

from __future__ import annotations

from typing import NamedTuple

from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan, Step
from windlass.stores.plans import reads
from windlass.stores.plans.reads import Record


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


def flow_jobs(dialect: Dialect, job_id: str) -> Plan[list[FlowRow] | None]:
    """Return all jobs of the flow of a job, in the order of their ids; None when there is no such job."""
    found = [FlowRow(*row) for row in (yield Step("flow_nodes", {"id": job_id}))]
    if found:
        return found
    stored = yield from reads.get(dialect, job_id)  # an archived flow would be looked for here
    if stored is None:
        return None
    waits = yield Step("waits_of_jobs", {"ids": dialect.ids([job_id])})
    return [_alone(stored.job)._replace(signal_key=waits[0][1] if waits else None)]


def _alone(job: Record) -> FlowRow:
    state = ("target", "status", "due", "picked_at", "reason", "error_class", "started_at", "finished_at")
    return FlowRow(job["id"], job["id"], None, None, None, *(job[name] for name in state))
