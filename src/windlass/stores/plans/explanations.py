"""Plans for `explain`: everything that decides whether a job runs."""

from __future__ import annotations

from collections.abc import Sequence

from windlass.domain.batch import BATCH_TARGET
from windlass.domain.explanation import Conditions, WaitingJob
from windlass.domain.lanes import MOST_LANES, QUEUE, read_lane
from windlass.domain.states import JobStatus
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan, Step
from windlass.stores.plans import batches, reads
from windlass.stores.plans.queues import FIRST_LANE, gates_named


def waiting_job(dialect: Dialect, job_id: str) -> Plan[tuple[WaitingJob, Conditions] | None]:
    """Return a job and the conditions around it; None when there is no such job."""
    found = yield from reads.get(dialect, job_id)
    if found is None:
        return None
    row, last = found.job, found.last_attempt
    lane, expires = (yield Step("lane_of", {"id": job_id})) or (None, None)
    waits: Sequence[Sequence[str]] = ()
    if row["status"] == JobStatus.WAITING:
        waits = yield Step("waits_of_jobs", {"ids": dialect.ids([job_id])})
    job = WaitingJob(
        status=JobStatus(row["status"]),
        queue=row["queue"],
        target=row["target"],
        lane=lane,
        due_at=row["due"],
        attempts=row["attempts"],
        error=last["error"] if last else None,
        node=row["node"],
        picked_at=row["picked_at"],
        reason=row["reason"],
        finished_at=row["finished_at"],
        paused_from=row["paused_from"],
        expires=expires,
        signal_key=waits[0][1] if waits else None,
        batch=(yield from batches.state(dialect, job_id)) if row["target"] == BATCH_TARGET else None,
    )
    return job, (yield from _conditions(dialect, job))


def _conditions(dialect: Dialect, job: WaitingJob) -> Plan[Conditions]:
    now = (yield Step("store_now"))[0]
    paused = dict((yield Step("list_queues"))).get(job.queue, 0)
    gates = yield from gates_named(dialect, [QUEUE + job.queue, *read_lane(job.lane).gates])
    nodes = yield Step("list_nodes")
    served = [None if row[4] is None else tuple(row[4].split(",")) for row in nodes if row[7]]
    lanes = [] if job.lane is None else (yield from dialect.waiting_lanes(FIRST_LANE, MOST_LANES + 1))
    return Conditions(now, bool(paused), gates, served, many_lanes=len(lanes) > MOST_LANES)
