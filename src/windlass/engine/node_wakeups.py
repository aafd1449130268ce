"""Wakeups after a node's commits: of its own poller, and of other nodes and handles of the cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence

from windlass.domain.circuit import CircuitChange
from windlass.domain.ended import Unfinished
from windlass.domain.job import Claim
from windlass.domain.states import Move
from windlass.domain.transition import NEVER_DUE, Transition
from windlass.engine.known_work import KnownWork
from windlass.runtime.unfinished_work import UnfinishedWork
from windlass.spi import Coordinator
from windlass.stores.channels import DONE, WORK
from windlass.stores.claim_order import Head
from windlass.stores.database import Database
from windlass.stores.notifier import EVERYTHING, Notifier
from windlass.submission.group_commit import payload_parts

DONE_PAYLOAD = "done"


class NodeWakeups:
    """Wakes the node's poller at once, and other processes through the coordinator or throttled notifications."""

    def __init__(
        self,
        known: KnownWork,
        database: Database,
        notifiers: tuple[Notifier, Notifier],
        coordinator: Coordinator | None,
        unfinished: UnfinishedWork | None = None,
    ) -> None:
        self._known = known
        self._unfinished = unfinished
        self._database = database
        self._work, self._done = notifiers
        self._coordinator = coordinator
        self._loop = asyncio.get_running_loop()
        self._sending: set[asyncio.Task[None]] = set()

    async def sent(self, timeout: float) -> None:
        """Wait for notifications that are being sent."""
        if self._sending:
            await asyncio.wait(self._sending, timeout=timeout)

    def new_work(self, work: Collection[tuple[str, int]]) -> None:
        """Wake for new jobs at these levels of queues."""
        self._known.new_work(work)
        self._wake_for(work)

    def stop(self, ids: Collection[str]) -> None:
        """Do nothing: a node cancels only jobs that do not run, and its cancellations poll by themselves."""

    def circuits_changed(self, changes: Sequence[CircuitChange]) -> None:
        """Report circuits that opened or closed; the transaction has notified other nodes."""
        self._known.circuits_changed(changes)

    def unfinished(self, work: Unfinished) -> None:
        """Have this node's service carry out what a commit has not finished."""
        if self._unfinished is not None:
            self._unfinished.add(work)

    def changed(self) -> None:
        """Wake all nodes: there may be new work anywhere, after a recovery or a lost answer.

        Other nodes are woken, too: this one may have no room, or not serve those queues.
        """
        self._known.changed()
        self._wake_all()

    def jobs_ended(self) -> None:
        """Notify handles of other processes that may wait for ended jobs."""
        self._send(DONE, self._done, (DONE_PAYLOAD,))

    def permits_freed(self, claims: Collection[Claim], *, announced: bool = False) -> None:
        """Wake for jobs that wait for the permits of these, here or on another node.

        Nodes that wait for permits also react to ended jobs: `announced`: they were notified of those.
        """
        self._known.permits_freed({(claim.queue, claim.lane) for claim in claims if claim.lane is not None})
        if self._coordinator is not None:
            self._wake_for({(claim.queue, claim.priority) for claim in claims})
        elif not announced:
            self._wake_all()

    def requeued(self, back: Sequence[tuple[Claim, Transition]]) -> None:
        """Wake for requeued jobs: some for other nodes to run now, some for any node to run later."""
        released = {(claim.queue, claim.priority) for claim, move in back if move.outcome in ("released", "lost")}
        self._wake_for(released)
        heads = [
            Head(claim.queue, claim.priority, _due_of(claim, move), _lane_of(claim, move))
            for claim, move in back
            if move.outcome != "passed_over" and move.move is not Move.PARK and move.delay_us != NEVER_DUE
        ]
        if heads:
            self._known.expect(heads)

    def _wake_for(self, work: Collection[tuple[str, int]]) -> None:
        """Notify other nodes: jobs that this node stored or released are new work to them, as after an enqueue.

        The levels are not sorted: one of a damaged row may not be comparable with others.
        """
        if self._coordinator is not None:
            for queue, level in work:
                self._coordinator.notify_new_work(queue, level)
        elif work:
            self._send(WORK, self._work, payload_parts(list(work)))

    def _wake_all(self) -> None:
        if self._coordinator is None:
            self._send(WORK, self._work, (EVERYTHING,))

    def _send(self, channel: str, notifier: Notifier, parts: Sequence[str]) -> None:
        payload = notifier.take(parts) if self._database.notifies else None
        if payload is not None:
            sending = self._loop.create_task(self._database.anotify(channel, payload))
            self._sending.add(sending)
            sending.add_done_callback(self._sending.discard)


def _lane_of(claim: Claim, move: Transition) -> str | None:
    """Return the lane in which a requeued job waits; an empty text means that it is in none any more."""
    return claim.lane if move.lane is None else move.lane or None


def _due_of(claim: Claim, move: Transition) -> int:
    """Return when a requeued job is due; one that was released keeps its due time."""
    return claim.due_at if move.move is Move.RELEASE else move.times.ended_at + move.delay_us
