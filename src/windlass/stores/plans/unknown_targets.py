"""Plans for targets that some nodes do not know: their jobs wait in separate lanes, and fail after a while."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final, NamedTuple

from windlass.domain.ended import NO_EFFECTS, Effects, Ended
from windlass.domain.lanes import needed_targets, read_lane, target_named
from windlass.domain.states import JobStatus, Move
from windlass.runtime.failpoints import reached
from windlass.stores.dialect import Dialect
from windlass.stores.ending import FollowUps, end
from windlass.stores.plan import Plan, RestartPlanError, Step
from windlass.stores.plans import reads


class UnknownTargets(NamedTuple):
    """Jobs that failed because no node knew their target for too long, and the effects."""

    failed: list[Ended]
    effects: Effects


class GivenUpFor(NamedTuple):
    """Why a job that waits is given up."""

    reason: str
    error_class: str


NOT_FOUND: Final = GivenUpFor("target_not_found", "TargetNotFoundError")


def targets_known(dialect: Dialect, targets: Collection[str]) -> Plan[None]:
    """Record that a node knows these targets: the time for which they were unknown starts over."""
    del dialect
    for queue, lane, _ in (yield Step("target_lanes", {"waited_us": 0})):
        if read_lane(lane).target in targets:
            yield Step("mark_lane_known", {"queue": queue, "lane": lane})


def start_over(dialect: Dialect) -> Plan[None]:
    """Start the time for which targets are unknown over: there was no node that could have known them."""
    del dialect
    yield Step("reset_unknown_since")


def fail_unknown(
    dialect: Dialect, waited_us: int, error_for: Callable[[str], str], follow_ups: FollowUps = ()
) -> Plan[UnknownTargets]:
    """Fail jobs that were due for too long in a lane whose target no node has known, in bounded batches.

    Empty lanes are deleted.
    """
    ids: list[str] = []
    for queue, lane, is_overdue in (yield Step("target_lanes", {"waited_us": waited_us})):
        jobs: list[tuple[str, int, str]] = []
        for level in range(10) if is_overdue else ():
            params = {"queue": queue, "lane": lane, "level": level, "waited_us": waited_us}
            jobs += yield Step("unknown_targets", params)
        for job, fence, target in jobs:
            if (yield from give_up(job, fence, error_for(_named(lane, target)), NOT_FOUND)):
                ids.append(job)
        if not jobs:
            # Locked first, so that the check is a separate statement, which sees jobs that came in meanwhile.
            yield Step("lock_lane", {"queue": queue, "lane": lane})
            yield Step("delete_empty_lane", {"queue": queue, "lane": lane})
    if not ids:
        return UnknownTargets([], NO_EFFECTS)
    yield Step("count_ended", {"ids": dialect.ids(ids)})
    failed = yield from reads.failed(dialect, ids, Move.GIVE_UP, JobStatus.PENDING)
    return UnknownTargets(failed, (yield from end(dialect, failed, follow_ups)))


def _named(lane: str, target: str) -> str:
    """Return what no node has known: the target, or one of its predicates."""
    needed = read_lane(lane).target or target
    return target_named(needed) if needed_targets(needed)[1] else target


def give_up(job: str, fence: int, error: str, why: GivenUpFor) -> Plan[bool]:
    """Fail one job that waits, unless it was claimed or moved meanwhile."""
    params = {"id": job, "fence": fence, "error": error, "error_class": why.error_class}
    params |= {"reason": why.reason, "crashes": 0, "holder_id": job}
    if (yield Step("give_up_done", params)) != 1:
        return False
    reached("sweep.given_up")
    if (yield Step("give_up_hot", params)) != 1:
        raise RestartPlanError  # claimed at this moment, by a node that knows the target
    yield Step("delete_live_key", params)
    return True
