"""Plans that revive followers: a retry brings back what the failure had canceled, not yet released.

What had been released stays as it is. A group that has no failed member any more brings back its own followers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final
from uuid import UUID

from windlass.domain.dependencies import BATCH, CountedGroup, MemberChange
from windlass.domain.ended import Unfinished
from windlass.errors import DuplicateBusinessKeyError
from windlass.runtime.failpoints import reached
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan, RestartPlanError, Step
from windlass.stores.plans import batch_ends, flow_branches, flow_retention, signal_waits
from windlass.stores.plans.flow_rows import REVIVE, cancels_of
from windlass.stores.plans.flows import MOST_ROWS

_BUSINESS_KEY: Final = 5
_GROUP: Final = 6
_UNSIGNALED: Final = 7
"""Where a row of `revivable` has what."""


class LargeRevivalError(Exception):
    """A retry would revive more followers than one transaction writes: `revive_some` has to go first."""

    def __init__(self, ids: Sequence[str]) -> None:
        super().__init__(f"the followers of {len(ids)} jobs are more than {MOST_ROWS}")
        self.ids = list(ids)


class UnfinishedCascadeError(Exception):
    """A retry would revive followers that a cascade still cancels: `flows.carry_on` has to finish it first."""

    def __init__(self, unfinished: Unfinished) -> None:
        super().__init__(f"{len(unfinished.operations)} operations still cancel followers")
        self.unfinished = unfinished


def revive(dialect: Dialect, ids: Sequence[str]) -> Plan[None]:
    """Revive everything that the failures of these jobs had canceled; they are started over in this transaction."""
    yield from _refuse_unfinished(dialect, ids)
    rows = yield Step("counted_for", {"ids": dialect.ids(ids)})
    counted = yield from _uncount(dialect, Counter(dict(rows)))
    batches = [one.group_id for one in counted if one.counts is not None and one.counts.kind == BATCH]
    causes = [*ids, *(yield from batch_ends.reopen(dialect, batches))]  # a canceled batch stays as it is
    revived = 0
    while found := (yield from _revive_next(dialect, "reopened_groups", causes, causes, MOST_ROWS + 1 - revived)):
        revived += found
        if revived > MOST_ROWS:
            raise LargeRevivalError(ids)
    yield from flow_branches.recall(dialect, causes)
    yield Step("forget_revivals", {"ids": dialect.ids(ids)})
    reached("revive.before_commit", lambda: revived > 0)


def revive_behind(dialect: Dialect, batch: str) -> Plan[None]:
    """Revive everything that the failure of a batch had canceled, of which children are started over later.

    It has few enough followers for one transaction (`submission.batch_encoder.MAX_FOLLOWERS`).
    """
    while (yield from _revive_next(dialect, "reopened_groups", [batch], [batch], MOST_ROWS)):
        pass
    yield from flow_branches.recall(dialect, [batch])


def revive_some(dialect: Dialect, ids: Sequence[str]) -> Plan[int]:
    """Revive the next followers of jobs that are about to be started over; return how many."""
    flows = yield from flow_retention.lock_of(dialect, ids)
    yield from _refuse_unfinished(dialect, ids)
    for flow in sorted(set(flows.values())):
        yield Step("save_operation", {"id": flow, "kind": REVIVE, "detail": "[]"})
    revived = yield from _revive_next(dialect, "reopening_groups", ids, ids, MOST_ROWS)
    reached("revive.wave", lambda: revived > 0)
    return revived


def _revive_next(dialect: Dialect, reopened: str, ids: Sequence[str], causes: Sequence[str], most: int) -> Plan[int]:
    """Revive followers of these `causes`, and of the groups that the statement `reopened` finds for jobs."""
    every = [*causes, *(group for (group,) in (yield Step(reopened, {"ids": dialect.ids(ids)})))]
    rows: list[Sequence[Any]] = yield Step("revivable", {"ids": dialect.ids(every)}, literals={"most": most})
    if not rows:
        return 0
    yield from _take_keys(dialect, rows)
    chosen = {"ids": dialect.ids([row[0] for row in rows])}
    yield Step("revive_followers", chosen)
    yield Step("forget_ended", chosen)
    if waiting := [row[0] for row in rows if row[_UNSIGNALED]]:
        yield from signal_waits.park_revived(dialect, waiting)
    yield Step("unguard_followers", chosen)
    yield from _uncount(dialect, Counter(row[_GROUP] for row in rows if row[_GROUP] is not None))
    return len(rows)


def _refuse_unfinished(dialect: Dialect, ids: Sequence[str]) -> Plan[None]:
    """Refuse while an operation still cancels because of these jobs or of a group: it would cancel what is revived."""
    cascades = yield Step("unfinished_cascades")
    if not cascades:
        return
    groups = yield Step("groups_of_flows", {"ids": dialect.ids(ids)})
    causes = {*ids, *(group for (group,) in groups)}
    found = [one for one, detail in cascades if any(row.cause in causes for row in cancels_of(detail))]
    if found:
        raise UnfinishedCascadeError(Unfinished(operations=frozenset(found)))


def _uncount(dialect: Dialect, failed: Counter[str]) -> Plan[list[CountedGroup]]:
    """Take members off the failed ones of their groups; return the groups."""
    if not failed:
        return []
    changes = [MemberChange(group, 0, -count) for group, count in sorted(failed.items())]
    return (yield from dialect.count_members(changes, wait=True))


def _take_keys(dialect: Dialect, rows: Sequence[Sequence[Any]]) -> Plan[None]:
    """Take business keys again; one that another job holds refuses the whole retry."""
    keys = sorted((row[_BUSINESS_KEY], row[0]) for row in rows if row[_BUSINESS_KEY] is not None)
    if not keys:
        return
    held = yield from dialect.find_holders([key for key, _ in keys])
    for key, holder in sorted(held.items()):
        raise DuplicateBusinessKeyError(key, UUID(holder.id), holder.kind)
    for (key, first), (following, _) in pairwise(keys):
        if key == following:  # followers of two flows that are started over together: only one of them can live
            raise DuplicateBusinessKeyError(key, UUID(first))
    if (yield from dialect.insert_keys("insert_live_keys", keys)) != len(keys):
        raise RestartPlanError  # another job has just taken one
