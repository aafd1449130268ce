"""Plans for the cluster: a node's lease, and the recovery of a lost node's jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from windlass.domain.dispatch_lag import NO_LAGS, LagCounts, added
from windlass.domain.ended import NO_EFFECTS, Effects, Ended
from windlass.runtime.failpoints import reached
from windlass.stores.dialect import Dialect, json_text
from windlass.stores.ending import FollowUps, end
from windlass.stores.plan import Plan, Step
from windlass.stores.plans import reads
from windlass.stores.plans.permits import release_for_lost_nodes


class NodeRow(NamedTuple):
    """What a node registers when it starts."""

    id: str
    host: str
    pid: int
    version: str
    queues: str | None
    origin: str | None = None
    """`module:attribute` of its application; None if it has no such name."""
    declares: str | None = None
    """The digest of the keys of schedules that its application declares."""


class Recovered(NamedTuple):
    """The result of one pass: requeued jobs per lost node, failed jobs, and whether there may be more."""

    recovered: dict[str, int]
    given_up: list[tuple[str, str]]
    more: bool
    freed: int = 0
    """Number of released permits that bodies of lost nodes had kept."""
    forgotten: Sequence[str] = ()
    """Lost nodes without anything left to recover; each is returned once."""
    ended: Sequence[Ended] = ()
    """The failed jobs, as far as they can be read."""
    effects: Effects = NO_EFFECTS


def register(dialect: Dialect, node: NodeRow, lease_us: int) -> Plan[None]:
    """Register a node with its first lease."""
    del dialect
    yield Step("insert_node", {**node._asdict(), "lease_us": lease_us}, alone=True)


def beat(
    dialect: Dialect,
    node_id: str,
    lease_us: int,
    running: int,
    error: str | None = None,
    lags: LagCounts = NO_LAGS,
) -> Plan[bool]:
    """Renew a node's lease, with its services' errors, and how late it has claimed jobs lately.

    Return False when the cluster has given it up.
    """
    del dialect
    lag = json_text(list(lags.items())) if lags else None
    params = {"id": node_id, "lease_us": lease_us, "running": running, "error": error, "lag": lag}
    count: int = yield Step("heartbeat", params, alone=True)
    return count == 1


def failing_nodes(dialect: Dialect) -> Plan[list[tuple[str, str]]]:
    """Return live nodes whose services keep failing, with the errors; the first ten by name."""
    del dialect
    rows: list[tuple[str, str]] = yield Step("failing_nodes", alone=True)
    return rows


def dispatch_lags(dialect: Dialect) -> Plan[LagCounts]:
    """Return how long after their due times all live nodes have claimed jobs lately, as of their last beats."""
    del dialect
    rows = yield Step("node_lags", alone=True)
    return added(counts for (text,) in rows if (counts := _lags(text)) is not None)


def _lags(text: str) -> LagCounts | None:
    try:
        return dict(msgspec.json.decode(text, type=list[tuple[int, int]]))
    except msgspec.DecodeError:  # of a version that writes it otherwise
        return None


def live_nodes(dialect: Dialect, max_age_us: int | None = None) -> Plan[int]:
    """Return how many nodes hold a lease now and, if an age is given, had a heartbeat since."""
    del dialect
    if max_age_us is None:
        row = yield Step("count_nodes", alone=True)
    else:
        row = yield Step("count_fresh_nodes", {"age_us": max_age_us}, alone=True)
    return int(row[0])


def nodes(dialect: Dialect) -> Plan[list[Sequence[Any]]]:
    """Return every registered node, oldest first."""
    del dialect
    rows: list[Sequence[Any]] = yield Step("list_nodes", alone=True)
    return rows


def ask_to_drain(dialect: Dialect, node_id: str) -> Plan[bool]:
    """Ask a node to drain; return False when no such node is alive."""
    del dialect
    count: int = yield Step("request_drain", {"id": node_id}, alone=True)
    return count == 1


def asked_to_drain(dialect: Dialect, node_id: str) -> Plan[bool]:
    """Return whether the node was asked to drain."""
    del dialect
    return (yield Step("drain_requested", {"id": node_id}, alone=True)) is not None


def serve_nothing(dialect: Dialect, node_id: str) -> Plan[None]:
    """Record that a node claims no more, but stays for bodies that it could not stop."""
    del dialect
    yield Step("serve_nothing", {"id": node_id}, alone=True)


def unregister(dialect: Dialect, node_id: str) -> Plan[None]:
    """Remove the row of a drained node."""
    del dialect
    yield Step("delete_node", {"id": node_id}, alone=True)


def mark_lost(dialect: Dialect, node_id: str | None = None) -> Plan[int]:
    """Mark every node whose lease has expired. One statement, so that concurrent calls do no harm.

    A node marks none unless it holds its own lease at that moment: it may have waited for the store.
    """
    del dialect
    count: int = yield Step("mark_lost", {"node": node_id}, alone=True)
    return count


def anything_lost(dialect: Dialect) -> Plan[bool]:
    """Return whether there is something to recover: a lost node, or a job or permit without a live node."""
    del dialect
    if (yield Step("lost_node")) is not None:
        return True
    return (yield Step("abandoned_permit")) is not None or bool((yield Step("orphaned_nodes")))


def recover(dialect: Dialect, crash_budget: int, follow_ups: FollowUps = ()) -> Plan[Recovered]:
    """Requeue up to a batch of jobs per lost node, or fail them once their crash budget is spent."""
    recovered: dict[str, int] = {}
    given_up: list[tuple[str, str]] = []
    more = False
    for (node,) in (yield Step("orphaned_nodes")):
        jobs: Sequence[tuple[str, int, Any]] = yield Step("orphaned_jobs", {"node": node})
        more = more or bool(jobs)
        spent = {job for job, _, crashes in jobs if not isinstance(crashes, int) or crashes >= crash_budget}
        back = [job for job, _, _ in jobs if job not in spent]
        if back:
            recovered[node] = yield from _bring_back(dialect, back, node)
        for job, fence, crashes in jobs:
            if job in spent and (yield from _give_up(job, fence, node, crashes)):
                given_up.append((job, node))
    ended, effects = yield from _end(dialect, [job for job, _ in given_up], follow_ups)
    freed = yield from release_for_lost_nodes(dialect)
    forgotten = sorted(node for (node,) in (yield Step("forget_lost_nodes")))
    reached("recovery.before_commit", lambda: bool(recovered or given_up))
    return Recovered(recovered, given_up, more, freed, forgotten, ended, effects)


def _end(dialect: Dialect, ids: Sequence[str], follow_ups: FollowUps) -> Plan[tuple[Sequence[Ended], Effects]]:
    """Count the failed jobs, and write their follow-ups."""
    if not ids:
        return (), NO_EFFECTS
    yield Step("count_ended", {"ids": dialect.ids(ids)})
    ended = yield from reads.failed(dialect, ids)
    return ended, (yield from end(dialect, ended, follow_ups))


def _bring_back(dialect: Dialect, ids: Sequence[str], node: str) -> Plan[int]:
    """Requeue all at once: this transaction has locked their rows, and a node may have hundreds."""
    params = {"ids": dialect.ids(ids), "node": node, "error": f"node {node} was lost"}
    yield Step("recover_attempts", params)
    yield Step("release_permits_of_lost", params)
    for _ in ids:
        reached("recovery.attempt_written")
    count: int = yield Step("recover_hots", params)
    return count


def _give_up(job: str, fence: int, node: str, crashes: object) -> Plan[bool]:
    times = f"{crashes + 1} times" if isinstance(crashes, int) else "too often"
    error = f"WorkerLostError: the job's worker was lost {times}, the last time on node {node}"
    params = {"id": job, "fence": fence, "error": error, "error_class": "WorkerLostError"}
    params |= {"reason": "worker_lost", "crashes": 1, "holder_id": job}
    if (yield Step("recover_attempt", params)) != 1:
        return False
    yield Step("give_up_done", params)
    yield Step("release_permit", params)
    reached("recovery.given_up")
    yield Step("give_up_hot", params)
    yield Step("delete_live_key", params)
    return True
