"""Plans for moves by hand: cancel, pause, resume, retry.

Each takes many ids at once, locks their rows, decides by the table of moves, and returns the jobs it moved. Other jobs
are left unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple
from uuid import UUID

from windlass.domain.batch import BATCH_TARGET
from windlass.domain.ended import NO_EFFECTS, Effects, Ended
from windlass.domain.execution import is_part
from windlass.domain.states import JobStatus, Move, sources_of
from windlass.domain.transition import EXPIRED
from windlass.errors import DuplicateBusinessKeyError, JobStateError
from windlass.runtime.failpoints import reached
from windlass.stores.channels import CANCELED, DONE
from windlass.stores.dialect import Dialect
from windlass.stores.ending import FollowUps, MovedJobs, end
from windlass.stores.plan import Plan, RestartPlanError, Step
from windlass.stores.plans import archive, dead_letters, flow_returns, permits, signal_waits
from windlass.stores.plans.flow_returns import ReturnedFlows
from windlass.stores.plans.work_notices import notify_of_work

MOST_NAMED = 150
"""Number of ids in a notification; beyond that the nodes query the store for all."""


class Steered(NamedTuple):
    """A job that was moved."""

    job_id: str
    left: JobStatus
    """The state it was in before."""
    queue: str
    priority: int
    target: str
    correlation_id: str | None
    in_flow: int = 0
    business_key: str | None = None
    """For a dead letter: the key that a retry must take again."""
    unsignaled: int = 0
    """For a dead letter: whether its signal has not come."""

    def by(self, move: Move, reason: str | None = None) -> Ended:
        """Return the job as ended, or revived, by this move."""
        return Ended(
            job_id=self.job_id,
            target=self.target,
            queue=self.queue,
            priority=self.priority,
            move=move,
            left=self.left,
            correlation_id=self.correlation_id,
            reason=reason,
            in_flow=bool(self.in_flow),
        )


def cancel(
    dialect: Dialect,
    ids: Sequence[str],
    follow_ups: FollowUps = (),
    reason: str = "canceled",
    *,
    parts: bool = False,
) -> Plan[MovedJobs]:
    """Cancel jobs that have not ended. A running one loses its row, so that its outcome is refused.

    `parts` is True for jobs that run items of executions: they are canceled with their execution only.
    """
    canceled, effects = yield from _cancel(dialect, ids, follow_ups, reason, parts=parts)
    missed = sorted(set(ids) - {job.job_id for job in canceled})
    if missed:  # it may have been revived between the reads of live and ended jobs
        again, further = yield from _cancel(dialect, missed, follow_ups, reason, parts=parts)
        canceled, effects = canceled + again, effects | further
    running = [job.job_id for job in canceled if job.left is JobStatus.RUNNING]
    if running:
        yield from dialect.notify(CANCELED, ",".join(running) if len(running) <= MOST_NAMED else "")
    if canceled:
        yield from dialect.notify(DONE, "")
    reached("cancel.before_commit")
    return MovedJobs([job.by(Move.CANCEL, reason) for job in canceled], effects)


def _cancel(
    dialect: Dialect, ids: Sequence[str], follow_ups: FollowUps, reason: str, *, parts: bool
) -> Plan[tuple[list[Steered], Effects]]:
    live = yield from lock_live(dialect, ids, Move.CANCEL)
    if not parts:
        _refuse_parts(live)
    effects = NO_EFFECTS
    if live:
        yield Step("cancel_attempts", _ids(dialect, live))
        yield from permits.keep_all(dialect, [job.job_id for job in live])
        effects = yield from _end_live(dialect, live, reason, follow_ups)
    ended = yield from _ended(dialect, ids, Move.CANCEL)
    if ended:
        yield Step("carry_progress", _ids(dialect, ended))
        yield Step("cancel_ended", {**_ids(dialect, ended), "reason": reason})
        yield from dead_letters.remove(dialect, [job.job_id for job in ended])
    return live + ended, effects


def cancel_expired(dialect: Dialect, most: int, follow_ups: FollowUps = ()) -> Plan[MovedJobs]:
    """Cancel jobs that have not started by their expiry time, the first to expire first."""
    rows = yield Step("lock_expired", {"most": most})
    expired = [Steered(job, JobStatus(status), *rest) for job, status, *rest in rows]
    effects = NO_EFFECTS
    if expired:
        effects = yield from _end_live(dialect, expired, EXPIRED, follow_ups)
        yield from dialect.notify(DONE, "")
    return MovedJobs([job.by(Move.CANCEL, EXPIRED) for job in expired], effects)


def _end_live(dialect: Dialect, live: Sequence[Steered], reason: str, follow_ups: FollowUps) -> Plan[Effects]:
    chosen = _ids(dialect, live)
    yield Step("cancel_live", {**chosen, "reason": reason})
    yield Step("finish_hot", chosen)
    yield Step("delete_live_keys", chosen)
    return (yield from end(dialect, [job.by(Move.CANCEL, reason) for job in live], follow_ups))


def pause(dialect: Dialect, ids: Sequence[str]) -> Plan[list[Steered]]:
    """Pause waiting jobs, or dead letters. Those that are PAUSED already are returned too."""
    moved = yield from _pause(dialect, ids)
    missed = sorted(set(ids) - {job.job_id for job in moved})
    if missed:  # it may have been revived between the reads of live and ended jobs
        yield from archive.bring_back(dialect, missed)
        moved += yield from _pause(dialect, missed)
    return moved


def _pause(dialect: Dialect, ids: Sequence[str]) -> Plan[list[Steered]]:
    live = yield from lock_live(dialect, ids, Move.PAUSE, also=JobStatus.PAUSED)
    _refuse_parts(live)
    waiting = [job for job in live if job.left is not JobStatus.PAUSED]
    if waiting:
        yield Step("pause_live", _ids(dialect, waiting))
    ended = yield from _ended(dialect, ids, Move.PAUSE, also=JobStatus.PAUSED)
    failed = [job for job in ended if job.left is not JobStatus.PAUSED]
    if failed:
        yield Step("carry_progress", _ids(dialect, failed))
        yield Step("pause_ended", _ids(dialect, failed))
        yield from dead_letters.hide(dialect, [job.job_id for job in failed])
    return live + ended


def resume(dialect: Dialect, ids: Sequence[str]) -> Plan[list[Steered]]:
    """Return paused jobs to the state they were paused from."""
    live = yield from lock_live(dialect, ids, Move.RESUME)
    if live:
        yield Step("resume_live", _ids(dialect, live))
    ended = yield from _ended(dialect, ids, Move.RESUME)
    if ended:
        yield Step("carry_progress", _ids(dialect, ended))
        yield Step("resume_ended", _ids(dialect, ended))
        yield from dead_letters.show(dialect, [job.job_id for job in ended])
    yield from notify_of_work(dialect, _levels(live))
    return live + ended


def retry(dialect: Dialect, ids: Sequence[str], follow_ups: FollowUps = ()) -> Plan[MovedJobs]:
    """Start dead letters over: no attempt spent, due now, with their business keys. All or none of them.

    An archived one comes back from the archive for that, with its whole flow. Raises `JobStateError` if that is too
    large.
    """
    failed, flows = yield from _dead(dialect, ids)
    for error in flows.refused.values():
        raise error
    keys = _keys(failed)
    if keys:
        yield from _refuse_held(dialect, keys)
    return (yield from _revive(dialect, failed, follow_ups))


NotRevived = DuplicateBusinessKeyError | JobStateError
"""Why a dead letter cannot be started over: another job holds its key, or its archived flow is too large."""


class Revived(NamedTuple):
    """Dead letters that were started over, and those that were not."""

    moved: MovedJobs
    kept: dict[str, NotRevived]
    """Jobs that could not be revived, and why."""
    later: frozenset[str] = frozenset()
    """Jobs of archived flows that are too many for one transaction."""


def retry_free(dialect: Dialect, ids: Sequence[str], follow_ups: FollowUps = ()) -> Plan[Revived]:
    """Do `retry` for those that can be started over. Of several that need one business key, the first gets it."""
    dead, flows = yield from _dead(dialect, ids, part=True)
    failed = {job.job_id: job for job in dead if job.job_id not in flows.refused and job.job_id not in flows.later}
    wanted = {job.business_key for job in failed.values() if job.business_key is not None}
    held = (yield from dialect.find_holders(sorted(wanted))) if wanted else {}
    holders = {key: (holder.id, holder.kind) for key, holder in held.items()}
    free: list[Steered] = []
    kept: dict[str, NotRevived] = dict(flows.refused)
    for job in (failed[job_id] for job_id in ids if job_id in failed):
        key = job.business_key
        if key is not None and key in holders:
            kept[job.job_id] = _held_by(key, *holders[key])
            continue
        if key is not None:
            holders[key] = (job.job_id, "job")
        free.append(job)
    return Revived((yield from _revive(dialect, free, follow_ups)), kept, flows.later)


def _dead(dialect: Dialect, ids: Sequence[str], *, part: bool = False) -> Plan[tuple[list[Steered], ReturnedFlows]]:
    """Return those that are dead letters; archived ones are moved back, with their flows."""
    failed = yield from _ended(dialect, ids, Move.RETRY)
    missed = sorted(set(ids) - {job.job_id for job in failed})
    letters = (yield from archive.bring_back(dialect, missed)) if missed else []
    if letters:
        failed = yield from _ended(dialect, ids, Move.RETRY)
    in_flow = {job.job_id for job in failed if job.in_flow}
    asked = [job for job in ids if job in in_flow]
    return failed, (yield from flow_returns.bring_back(dialect, asked, letters, part=part))


def _revive(dialect: Dialect, failed: Sequence[Steered], follow_ups: FollowUps) -> Plan[MovedJobs]:
    if not failed:
        return MovedJobs([])
    keys = _keys(failed)
    if keys and (yield from dialect.insert_keys("insert_live_keys", keys)) != len(keys):
        raise RestartPlanError  # another job has just taken one
    yield Step("revive", _ids(dialect, failed))
    yield Step("forget_ended", _ids(dialect, failed))
    if waiting := [job.job_id for job in failed if job.unsignaled]:
        yield from signal_waits.park_revived(dialect, waiting)
    yield from dead_letters.remove(dialect, [job.job_id for job in failed])
    yield from notify_of_work(dialect, _levels(failed))
    revived = [job.by(Move.RETRY) for job in failed]
    work = Effects(work=frozenset(_levels(failed)))
    return MovedJobs(revived, work | (yield from end(dialect, revived, follow_ups)))


def _levels(moved: Sequence[Steered]) -> set[tuple[str, int]]:
    return {(job.queue, job.priority) for job in moved}


def _keys(failed: Sequence[Steered]) -> list[tuple[str, str]]:
    return sorted((job.business_key, job.job_id) for job in failed if job.business_key is not None)


def _held_by(key: str, holder: str, kind: str) -> DuplicateBusinessKeyError:
    return DuplicateBusinessKeyError(key, UUID(holder), kind)


def _refuse_held(dialect: Dialect, keys: Sequence[tuple[str, str]]) -> Plan[None]:
    held = yield from dialect.find_holders([key for key, _ in keys])
    for key, holder in sorted(held.items()):
        raise DuplicateBusinessKeyError(key, UUID(holder.id), holder.kind)
    for (key, first), (following, _) in pairwise(keys):
        if key == following:  # two dead letters of one key: only one of them can live
            raise DuplicateBusinessKeyError(key, UUID(first))


def lock_live(dialect: Dialect, ids: Sequence[str], move: Move, also: JobStatus | None = None) -> Plan[list[Steered]]:
    """Lock the rows of jobs that have not ended.

    Return those that `move` may start from, or that are `also` in a state.
    """
    rows = yield Step("lock_live", {"ids": dialect.ids(ids)})
    found = [Steered(job, JobStatus(status), *rest) for job, status, *rest in rows]
    return [job for job in found if job.left in sources_of(move) or job.left is also]


def _refuse_parts(moved: Sequence[Steered]) -> None:
    for job in moved:
        if is_part(job.target):
            raise JobStateError(UUID(job.job_id), "it runs items of an execution; cancel or pause the execution")


def _ended(dialect: Dialect, ids: Sequence[str], move: Move, also: JobStatus | None = None) -> Plan[list[Steered]]:
    """Lock dead letters in the same way. A FAILED batch is none: `operations.retry_failed` starts its children over."""
    rows = yield Step("lock_ended", {"ids": dialect.ids(ids)})
    found = [Steered(row[0], JobStatus(row[1]), *row[2:]) for row in rows]
    return [job for job in found if (job.left in sources_of(move) or job.left is also) and job.target != BATCH_TARGET]


def _ids(dialect: Dialect, moved: Sequence[Steered]) -> dict[str, str]:
    return {"ids": dialect.ids([job.job_id for job in moved])}
