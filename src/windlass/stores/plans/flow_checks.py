"""Plans for the checks of flows: find and correct what a crash or an older version has left undone.

Each looks at a window of rows and returns where the next one begins, so that a pass costs the same however many flows
there are.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from windlass.domain.batch import BATCH_TARGET
from windlass.domain.dependencies import ALL, EndedStep, MemberChange
from windlass.domain.ended import NO_EFFECTS, Effects, Unfinished
from windlass.domain.identity import FIRST_ID, LAST_ID
from windlass.domain.states import JobStatus
from windlass.stores.dialect import Dialect
from windlass.stores.ending import FollowUps, end_canceled
from windlass.stores.plan import Plan, Step
from windlass.stores.plans import flows
from windlass.stores.plans.flow_rows import parents_of

WINDOW: Final = 5_000
"""Number of jobs of flows that one pass checks."""
GROUPS: Final = 500
MOST: Final = 200
"""Number of parents, groups or operations that one transaction works on."""
MOST_RECOUNTED: Final = 10
OPERATION_IDLE_US: Final = 10_000_000
"""An operation that was not touched for so long has lost the process that carried it out."""
GROUP_IDLE_US: Final = 600_000_000


_ENDS: Final = frozenset({JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.CANCELED})


class Checked(NamedTuple):
    """The result of one check."""

    effects: Effects = NO_EFFECTS
    found: int = 0
    """Number of parents or groups that had to be put right."""
    next_after: str = FIRST_ID


def find_unfinished(dialect: Dialect) -> Plan[Unfinished]:
    """Return work that was left for later and is not in progress: noted counts, and idle operations."""
    del dialect
    groups = yield Step("uncounted_groups", literals={"most": MOST})
    operations = yield Step("idle_operations", {"idle_us": OPERATION_IDLE_US}, literals={"most": 1})
    return Unfinished(frozenset(group for (group,) in groups), frozenset(one for (one,) in operations))


def release_missed(dialect: Dialect, after: str, follow_ups: FollowUps = ()) -> Plan[Checked]:
    """Decide again about followers that wait for a parent that has ended."""
    row = yield Step("flow_window", {"after": after}, literals={"window": WINDOW})
    window = {"after": after, "until": LAST_ID if row is None else row[0], "idle_us": OPERATION_IDLE_US}
    waiting = yield Step("unreleased_of_jobs", window, literals={"most": MOST})
    counted = yield Step("unreleased_of_groups", window, literals={"most": MOST})
    # Read after the followers: an operation that was stored in between is seen, one that has ended leaves none of them.
    in_progress = (yield from _carried_out_now()) if waiting or counted else frozenset()
    jobs = [job for (job,) in waiting if job not in in_progress]
    groups = frozenset(group for (group,) in counted if group not in in_progress)
    parents = (yield Step("lock_parents", {"ids": dialect.ids(jobs)})) if jobs else []
    ended = [
        EndedStep(job, _ended_status(status), ALL, None, *why)
        for job, status, *why, of in parents
        if of != BATCH_TARGET
    ]
    effects = (yield from flows.follow(dialect, ended)) if ended else NO_EFFECTS
    if len(ended) < len(parents):
        effects |= yield from flows.decide_batches(dialect, [job for job, *_, of in parents if of == BATCH_TARGET])
    effects = yield from end_canceled(dialect, effects, follow_ups)
    if groups:
        effects |= yield from flows.carry_on(dialect, Unfinished(groups), follow_ups)
    return Checked(effects, len(parents) + len(groups), FIRST_ID if row is None else row[0])


def _carried_out_now() -> Plan[frozenset[str]]:
    """Return the parents whose followers another process releases or cancels at this moment, part by part."""
    operations = yield Step("active_operations", {"idle_us": OPERATION_IDLE_US}, literals={"most": MOST})
    return frozenset(parent for kind, detail in operations for parent in parents_of(kind, detail))


def _ended_status(status: str) -> JobStatus:
    """Return the end of a parent; one that was paused since had failed, and a damaged one counts as failed."""
    return JobStatus(status) if status in _ENDS else JobStatus.FAILED


def recount(dialect: Dialect, after: str, follow_ups: FollowUps = ()) -> Plan[Checked]:
    """Count the members of groups again that have no live member and still wait for one."""
    row = yield Step("group_window", {"after": after}, literals={"window": GROUPS})
    window = {"after": after, "until": LAST_ID if row is None else row[0], "idle_us": GROUP_IDLE_US}
    stalled = yield Step("stalled_groups", window, literals={"most": MOST_RECOUNTED})
    idle = yield Step("idle_batches", window, literals={"most": 1})
    wrong: list[str] = []
    for recounted, group in [
        *(("recount_members", one) for (one,) in stalled),
        *(("recount_children", one) for (one,) in idle),
    ]:
        counts = yield Step(recounted, {"id": group})
        if counts is None:
            continue
        _, succeeded, failed, really_succeeded, really_failed = counts
        if (succeeded, failed) != (really_succeeded, really_failed):
            change = MemberChange(group, really_succeeded - succeeded, really_failed - failed)
            yield from dialect.count_members([change], wait=True)
            wrong.append(group)
    checked = frozenset(wrong) | {
        batch for (batch,) in idle
    }  # counting nothing is a touch: its turn comes in ten minutes
    effects = (yield from flows.carry_on(dialect, Unfinished(checked), follow_ups)) if checked else NO_EFFECTS
    return Checked(effects, len(wrong), FIRST_ID if row is None else row[0])
