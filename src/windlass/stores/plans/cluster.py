"""Plans for the cluster: a node's lease, and the recovery of what a lost node was running."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from windlass.domain.ended import NO_EFFECTS, Effects, Ended
from windlass.runtime.failpoints import reached
from windlass.stores.dialect import Dialect
from windlass.stores.ending import FollowUps, end
from windlass.stores.plan import Plan, Step
from windlass.stores.plans import reads
from windlass.stores.plans.permits import leave_for_the_lost


class NodeRow(NamedTuple):
    """What a node says of itself when it starts."""

    id: str
    host: str
    pid: int
    version: str
    queues: str | None


class Recovery(NamedTuple):
    """What one pass brought back: jobs per lost node, the jobs given up, and whether there may be more."""

    recovered: dict[str, int]
    given_up: list[tuple[str, str]]
    more: bool
    freed: int = 0
    """Places at gates that bodies had kept whose node is gone."""
    forgotten: Sequence[str] = ()
    """Lost nodes of which nothing is left to bring back; each is answered once."""
    ended: Sequence[Ended] = ()
    """The jobs given up, as far as they can be read."""
    effects: Effects = NO_EFFECTS


def register(dialect: Dialect, node: NodeRow, lease_us: int) -> Plan[None]:
    """Enter a node with its first lease."""
    del dialect
    yield Step("insert_node", {**node._asdict(), "lease_us": lease_us}, alone=True)


def beat(dialect: Dialect, node_id: str, lease_us: int, running: int, error: str | None = None) -> Plan[bool]:
    """Renew a node's lease, with what its services keep failing with; False when the cluster has given it up."""
    del dialect
    params = {"id": node_id, "lease_us": lease_us, "running": running, "error": error}
    count: int = yield Step("beat", params, alone=True)
    return count == 1


def failing_nodes(dialect: Dialect) -> Plan[list[tuple[str, str]]]:
    """Live nodes whose services keep failing, and with what; the first ten by name."""
    del dialect
    rows: list[tuple[str, str]] = yield Step("failing_nodes", alone=True)
    return rows


def live_nodes(dialect: Dialect, max_age_us: int | None = None) -> Plan[int]:
    """How many nodes hold a lease now and, if an age is given, had a heartbeat since."""
    del dialect
    if max_age_us is None:
        row = yield Step("count_nodes", alone=True)
    else:
        row = yield Step("count_fresh_nodes", {"age_us": max_age_us}, alone=True)
    return int(row[0])


def nodes(dialect: Dialect) -> Plan[list[Sequence[Any]]]:
    """Every node that has not signed off, oldest first."""
    del dialect
    rows: list[Sequence[Any]] = yield Step("list_nodes", alone=True)
    return rows


def ask_to_drain(dialect: Dialect, node_id: str) -> Plan[bool]:
    """Have a node drain and leave; False when no such node is alive."""
    del dialect
    count: int = yield Step("ask_to_drain", {"id": node_id}, alone=True)
    return count == 1


def asked_to_drain(dialect: Dialect, node_id: str) -> Plan[bool]:
    """Whether somebody wants the node to leave."""
    del dialect
    return (yield Step("asked_to_drain", {"id": node_id}, alone=True)) is not None


def serve_nothing(dialect: Dialect, node_id: str) -> Plan[None]:
    """A node claims no more, and lives on for the bodies that it could not stop."""
    del dialect
    yield Step("serve_nothing", {"id": node_id}, alone=True)


def unregister(dialect: Dialect, node_id: str) -> Plan[None]:
    """Remove a node that leaves in good order."""
    del dialect
    yield Step("delete_node", {"id": node_id}, alone=True)


def mark_lost(dialect: Dialect, node_id: str | None = None) -> Plan[int]:
    """Mark every node whose lease has run out. One statement, so two nodes that look at once do no harm.

    A node that looks marks nobody unless it holds its own lease at that very moment: it may have waited for the store.
    """
    del dialect
    count: int = yield Step("mark_lost", {"node": node_id}, alone=True)
    return count


def anything_lost(dialect: Dialect) -> Plan[bool]:
    """Whether there is something to recover: a node marked lost, a job or a kept place where no live node is."""
    del dialect
    if (yield Step("lost_node")) is not None:
        return True
    return (yield Step("abandoned_place")) is not None or bool((yield Step("orphaned_nodes")))


def recover(dialect: Dialect, crash_budget: int, follow_ups: FollowUps = ()) -> Plan[Recovery]:
    """Bring back up to a batch of jobs per lost node: PENDING again, or FAILED once their crash budget is spent."""
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
    freed = yield from leave_for_the_lost(dialect)
    forgotten = sorted(node for (node,) in (yield Step("forget_lost_nodes")))
    reached("recovery.before_commit", lambda: bool(recovered or given_up))
    return Recovery(recovered, given_up, more, freed, forgotten, ended, effects)


def _end(dialect: Dialect, ids: Sequence[str], follow_ups: FollowUps) -> Plan[tuple[Sequence[Ended], Effects]]:
    """Count the jobs given up, and write what follows."""
    if not ids:
        return (), NO_EFFECTS
    yield Step("count_ended", {"ids": dialect.ids(ids)})
    ended = yield from reads.failed(dialect, ids)
    return ended, (yield from end(dialect, ended, follow_ups))


def _bring_back(dialect: Dialect, ids: Sequence[str], node: str) -> Plan[int]:
    """All at once: this transaction has locked their rows, and a node may leave hundreds behind."""
    params = {"ids": dialect.ids(ids), "node": node, "error": f"node {node} was lost"}
    yield Step("recover_attempts", params)
    yield Step("free_places_of_lost", params)
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
    yield Step("free_place", params)
    reached("recovery.given_up")
    yield Step("give_up_hot", params)
    yield Step("delete_live_key", params)
    return True
