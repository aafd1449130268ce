"""The duty that admits hand-offs from the backlog: of subscribers that were paused, full or absent, or had refused."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from typing import Final

from windlass import loggers
from windlass.domain.clock import MICROSECONDS, monotonic
from windlass.domain.ended import Effects
from windlass.errors import StoreUnavailableError
from windlass.feature import NodeTools
from windlass.pipelines.subscribers import Subscriber, Subscribers, log_failures
from windlass.runtime.duty import Duty, LeaseLostError
from windlass.runtime.failpoints import reached
from windlass.stores.lease_holder import LeaseHolder
from windlass.stores.plans import handoff_backlog, subscriptions
from windlass.stores.plans.handoff_backlog import WaitingHandoff

logger = loggers.logger("windlass.publication")

NAME: Final = "publications"
MOST: Final = 500
"""Number of hand-offs of one subscriber that one transaction admits."""
MOST_BYTES: Final = 8 << 20
"""Length of their payloads at which there are no more in it."""
LONGEST_PAUSE: Final = 5.0
"""Seconds after which it looks again: another process may have published or resumed."""
PAUSE_WITH_BACKLOG: Final = 1.0
"""The same while something waits."""
FOLD_INTERVAL: Final = 30.0
SUSPENDED_FOR: Final = 60.0


class BacklogDuty(Duty):
    """Admits what is due for the pipelines of this process, subscriber by subscriber: none waits for another."""

    def __init__(
        self, lease: LeaseHolder, subscribers: Subscribers, tools: NodeTools, known_queues: Collection[str]
    ) -> None:
        super().__init__(NAME, lease, tools.errors)
        self._bell = subscribers.bell
        self._lease = lease
        self._subscribers = subscribers
        self._database = tools.database
        self._publish = tools.publish
        self._known_queues = known_queues
        self._ready: list[tuple[Subscriber, int | None]] = []
        """Subscribers with due hand-offs, and how many more each admits."""
        self._aside: dict[tuple[str, str], float] = {}
        """End of the suspension of subscribers whose hand-offs the store refuses."""
        self._moved = False
        self._folded = monotonic()

    async def tick(self) -> float | None:
        """Look whether anything can be admitted; take the lease only then."""
        pause = await self._look()
        if not self._ready and not self._should_fold:
            return pause
        wait = await self._turns.take()
        if wait > 0:
            return min(wait, pause)
        self._moved = False
        await self._pass()
        return 0.0 if self._moved else pause

    @property
    def _should_fold(self) -> bool:
        return monotonic() - self._folded > FOLD_INTERVAL

    async def _look(self) -> float:
        now = monotonic()
        subscribers = {
            subscription: one
            for one in self._subscribers.of()
            if self._aside.get(subscription := (one.publication, one.name), now) <= now
        }
        found = await self._database.aread(handoff_backlog.look, list(subscribers)) if subscribers else {}
        self._ready = [(subscribers[subscription], look.room) for subscription, look in found.items() if look.ready]
        dues = [look.due_us / MICROSECONDS for look in found.values() if look.due_us is not None]
        later = [due for due in dues if due > 0]
        return min([LONGEST_PAUSE, *later, *([PAUSE_WITH_BACKLOG] if dues else [])])

    async def batch(self) -> bool:
        """Admit one batch of each subscriber; return whether any of them may have more."""
        if self._should_fold:
            while await self._lease.run(subscriptions.fold_counts):
                pass
            self._folded = monotonic()
        more = []
        for subscriber, room in self._ready:
            if await self._admit(subscriber, room):
                more.append((subscriber, room))
        self._ready = more
        return bool(more)

    async def _admit(self, subscriber: Subscriber, room: int | None) -> bool:
        """Admit what is due for one subscriber; its errors must not delay the others."""
        try:
            return await self._admit_batch(subscriber, room)
        except (LeaseLostError, StoreUnavailableError):
            raise
        except Exception as error:
            self._aside[subscriber.publication, subscriber.name] = monotonic() + SUSPENDED_FOR
            logger.exception(
                "publication %s: hand-offs to subscriber %s could not be admitted (%s); they are tried again in %g s",
                *(subscriber.publication, subscriber.name, type(error).__name__, SUSPENDED_FOR),
            )
            return False

    async def _admit_batch(self, subscriber: Subscriber, room: int | None) -> bool:
        most = MOST if room is None else min(MOST, room)
        waiting = await self._database.aread(handoff_backlog.due, subscriber.publication, subscriber.name, most)
        if not waiting:
            return False
        count = _affordable(waiting)
        items = await asyncio.to_thread(lambda: [(one, subscriber.readmitted(one)) for one in waiting[:count]])
        published = await self._lease.run(
            handoff_backlog.admit_waiting, subscriber.subscription, items, self._known_queues
        )
        reached("publish.backlog_after_commit")
        log_failures(published.failures)
        if published.work:
            self._publish((), Effects(work=published.work))
        moved = bool(published.admitted or published.failures)
        self._moved = self._moved or moved
        return moved and room is None and len(waiting) == MOST


def _affordable(waiting: Sequence[WaitingHandoff]) -> int:
    """Return how many hand-offs one transaction admits, at least one."""
    size = 0
    for number, one in enumerate(waiting):
        if size >= MOST_BYTES:
            return number
        size += len(one.payload or "")
    return len(waiting)
