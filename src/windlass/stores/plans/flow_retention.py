"""Plans for how long the rows of a flow are kept: archived as a whole, and not purged while one of its jobs is live.

If one job of a flow is archived, the flow has ended, and none of its jobs is live. A plan that moves or deletes jobs of
a flow, or starts them over, locks the flow, after the jobs' own rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan, Step


def lock_of(dialect: Dialect, ids: Sequence[str]) -> Plan[dict[str, str]]:
    """Wait for the flows of jobs that are to be started over; return the flow of each."""
    flows = dict((yield Step("flows_of_jobs", {"ids": dialect.ids(ids)})))
    if flows:
        yield from dialect.lock_flows(sorted(set(flows.values())), wait=True)
    return flows


def not_archivable(dialect: Dialect, flows: Collection[str], age_us: int) -> Plan[set[str]]:
    """Return those flows of which a job has not ended, is PAUSED, or has not ended so long ago."""
    if not flows:
        return set()
    rows = yield Step("unarchivable_flows", {"ids": dialect.ids(sorted(flows)), "age_us": age_us})
    return {flow for (flow,) in rows}


def lock_archivable(dialect: Dialect, flows: Iterable[str | None], age_us: int) -> Plan[set[str]]:
    """Lock flows whose jobs may be archived; skip others, and those that another transaction works on."""
    named = sorted({flow for flow in flows if flow is not None})
    if not named:
        return set()
    locked = yield from dialect.lock_flows(named, wait=False)
    return set(locked) - (yield from not_archivable(dialect, locked, age_us))


def lock_ended(dialect: Dialect, flows: Collection[str]) -> Plan[set[str]]:
    """Lock flows without a live job; skip others, and those that another transaction works on."""
    if not flows:
        return set()
    locked = yield from dialect.lock_flows(sorted(flows), wait=False)
    if not locked:
        return set()
    rows = yield Step("live_flows", {"ids": dialect.ids(locked)})
    return set(locked) - {flow for (flow,) in rows}


def forget(dialect: Dialect, ids: Sequence[str], flows: Collection[str]) -> Plan[None]:
    """Delete the positions of jobs in these flows, and the groups of flows without any job."""
    yield Step("forget_flow", {"ids": dialect.ids(ids)})
    groups = [group for (group,) in (yield Step("forget_flow_groups", {"ids": dialect.ids(sorted(flows))}))]
    if groups:
        yield Step("forget_deltas", {"ids": dialect.ids(groups)})
