"""Plans for queues: the heads a claim looks at, and the lanes of targets that some nodes do not know."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from windlass.stores.dialect import Dialect, GivenUp, Head, nothing_else
from windlass.stores.plan import Plan, RestartPlanError, Step

TARGET_LANE = "target:"


class Heads(NamedTuple):
    """The first due time of every level that has jobs, as of `now` by the store's clock."""

    now: int
    heads: list[Head]
    queues: frozenset[str]
    """Queues served and not paused, whether they have jobs or not."""


class Forsaken(NamedTuple):
    """A job failed because no node knew its target for too long."""

    job_id: str
    queue: str
    target: str


def heads(dialect: Dialect, serves: Callable[[str], bool], knows: Callable[[str], bool]) -> Plan[Heads]:
    """Heads of every queue served and not paused, and of the target lanes whose target is known here."""
    del dialect
    rows = yield Step("heads", alone=True)
    now = next(due for queue, _, due, _ in rows if queue is None)
    found = [
        Head(queue, level, due, lane)
        for queue, level, due, lane in rows
        if queue is not None
        and due is not None
        and serves(queue)
        and (lane is None or knows(lane.removeprefix(TARGET_LANE)))
    ]
    names = {queue for queue, _, _, _ in rows if queue is not None}
    return Heads(now, found, frozenset(name for name in names if serves(name)))


class Depth(NamedTuple):
    """A queue and what is in it."""

    name: str
    paused: bool
    waiting: int
    running: int
    first_due: int | None


def depths(dialect: Dialect) -> Plan[list[Depth]]:
    """Every queue, by name. What waits is counted up to a bound: no look may cost as much as a queue is deep."""
    del dialect
    running = dict((yield Step("running_by_queue")))
    found = []
    for name, paused in (yield Step("list_queues")):
        (waiting,) = yield Step("queue_depth", {"queue": name})
        (first_due,) = yield Step("queue_head", {"queue": name})
        found.append(Depth(name, bool(paused), waiting, running.get(name, 0), first_due))
    return found


def fail_unknown(
    dialect: Dialect, waited_us: int, error_for: Callable[[str], str], also: GivenUp = nothing_else
) -> Plan[list[Forsaken]]:
    """Fail what has waited too long in a target lane, in bounded batches; lanes that ran empty are forgotten."""
    failed: list[Forsaken] = []
    for queue, lane in (yield Step("target_lanes")):
        jobs: list[tuple[str, int, str]] = []
        for level in range(10):
            params = {"queue": queue, "lane": lane, "level": level, "waited_us": waited_us}
            jobs += yield Step("unknown_targets", params)
        for job, fence, target in jobs:
            params = {"id": job, "fence": fence, "error": error_for(target), "error_class": "TargetNotFoundError"}
            params |= {"reason": "target_not_found", "crashes": 0, "holder_id": job}
            if (yield Step("give_up_done", params)) == 1:
                if (yield Step("give_up_hot", params)) != 1:
                    raise RestartPlanError  # claimed at this moment, by a node that knows the target
                yield Step("delete_live_key", params)
                failed.append(Forsaken(job, queue, target))
        if not jobs:
            # Locked first, so that the check is a statement of its own: it then sees whoever moved in meanwhile.
            yield Step("lock_lane", {"queue": queue, "lane": lane})
            yield Step("delete_empty_lane", {"queue": queue, "lane": lane})
    if failed:
        yield from also(dialect, [job.job_id for job in failed])
    return failed
