"""Holders of leases over time, from the witness alone; and when a run was certainly over."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping
from math import inf

from tests.chaos.facts import AttemptRow, Facts
from tests.chaos.witness import Lease, Run


class Leases:
    """Answers whether a node certainly held its lease at a moment.

    A lease counts from before its heartbeat was sent, so it ended no sooner than the witness says: what is answered
    with True is beyond doubt. A later heartbeat replaces an earlier one, also when it promises less.
    """

    def __init__(self, leases: list[Lease]) -> None:
        self._of: dict[str, list[Lease]] = defaultdict(list)
        for lease in leases:
            self._of[lease.node].append(lease)
        for of_node in self._of.values():
            of_node.sort(key=lambda lease: lease.since)
        self._since = {node: [lease.since for lease in of_node] for node, of_node in self._of.items()}

    def held(self, node: str | None, at: float) -> bool:
        """Whether the lease of `node` held at that moment."""
        if node is None or node not in self._of:
            return False
        last = bisect_right(self._since[node], at) - 1
        return last >= 0 and at < self._of[node][last].until


def claimed_by(facts: Facts, run: Run) -> str:
    """The node in whose name a run was claimed: a node that lost its lease goes on under another name."""
    outcome, live = facts.outcome(run), facts.hot.get(run.job)
    if outcome is not None and outcome.node is not None:
        return outcome.node
    if live is not None and live.fence == run.fence and live.node is not None:
        return live.node
    return run.node


class Deaths:
    """When processes were killed by the driver; a node's id has the pid of its worker in it."""

    def __init__(self, facts: Facts) -> None:
        self._killed: Mapping[int, float] = {
            fault.pid: fault.at for fault in facts.account.faults if fault.kind == "kill"
        }

    def of(self, node: str) -> float | None:
        """When the worker behind a node was killed, if it was."""
        return self._killed.get(worker_of(node))


def worker_of(node: str) -> int:
    """`host-pid-random` → pid."""
    return int(node.rsplit("-", 2)[1])


def over_at(facts: Facts, deaths: Deaths, run: Run) -> float:
    """When a run was certainly over; for ever after if that is unknown, and nothing explains why.

    A body in a process of its own is killed at its timeout, by a cancel and by itself, and then cannot say so.
    """
    if run.ended is not None:
        return run.ended
    outcome = facts.outcome(run)
    if outcome is not None and _explains_silence(outcome):
        return run.started
    killed = deaths.of(run.node)
    return inf if killed is None else killed


def _explains_silence(outcome: AttemptRow) -> bool:
    timed_out = outcome.error_class == "JobTimeoutError"
    died = outcome.outcome == "lost" and outcome.entered  # its own worker saw the process die
    return timed_out or died or outcome.outcome == "canceled"
