"""Plans for `explain`: all that decides whether a job runs."""

from __future__ import annotations

from windlass.domain.explanation import Surroundings, WaitingJob
from windlass.domain.lanes import MOST_LANES, QUEUE, read_lane
from windlass.domain.states import JobStatus
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan, Step
from windlass.stores.plans import reads
from windlass.stores.plans.queues import FIRST_LANE, gates_named


def waiting_job(dialect: Dialect, job_id: str) -> Plan[tuple[WaitingJob, Surroundings] | None]:
    """A job and what is around it; None when there is no such job."""
    found = yield from reads.get(dialect, job_id)
    if found is None:
        return None
    row, last = found.row, found.last_attempt
    lane, expires = (yield Step("lane_of", {"id": job_id})) or (None, None)
    job = WaitingJob(
        status=JobStatus(row[3]),
        queue=row[2],
        target=row[1],
        lane=lane,
        due_at=row[18],
        attempts=row[15],
        error=last[0] if last else None,
        node=row[17],
        picked_at=row[19],
        reason=row[24],
        finished_at=row[27],
        paused_from=row[20],
        expires=expires,
    )
    return job, (yield from _surroundings(dialect, job))


def _surroundings(dialect: Dialect, job: WaitingJob) -> Plan[Surroundings]:
    now = (yield Step("store_now"))[0]
    paused = dict((yield Step("list_queues"))).get(job.queue, 0)
    gates = yield from gates_named(dialect, [QUEUE + job.queue, *read_lane(job.lane).gates])
    nodes = yield Step("list_nodes")
    served = [None if row[4] is None else tuple(row[4].split(",")) for row in nodes if row[7]]
    lanes = [] if job.lane is None else (yield from dialect.waiting_lanes(FIRST_LANE, MOST_LANES + 1))
    return Surroundings(now, bool(paused), gates, served, many_lanes=len(lanes) > MOST_LANES)
