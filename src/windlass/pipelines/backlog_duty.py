"""The duty that admits hand-offs from the backlog: of subscribers that were paused, full or absent, or had refused."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Final

from windlass.domain.clock import monotonic
from windlass.domain.ended import Effects
from windlass.feature import NodeTools
from windlass.pipelines.subscribers import Subscriber, Subscribers, log_failures
from windlass.runtime.duty import Duty
from windlass.runtime.failpoints import reached
from windlass.stores.lease_holder import LeaseHolder
from windlass.stores.plans import handoff_backlog, subscriptions

NAME: Final = "publications"
MOST: Final = 500
"""Number of hand-offs of one subscriber that one transaction admits."""
LONGEST_PAUSE: Final = 5.0
"""Seconds after which it looks again: another process may have published or resumed."""
PAUSE_WITH_BACKLOG: Final = 1.0
"""The same while something waits."""
FOLD_INTERVAL: Final = 30.0
MICROSECONDS: Final = 1_000_000


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
        self._ready: list[Subscriber] = []
        self._folded = monotonic()

    async def tick(self) -> float | None:
        """Look whether anything can be admitted; take the lease only then."""
        pause = await self._look()
        fold = monotonic() - self._folded > FOLD_INTERVAL
        if not self._ready and not fold:
            return pause
        wait = await self._turns.take()
        if wait > 0:
            return min(wait, pause)
        await self._pass()
        return 0.0 if self._ready else pause

    async def _look(self) -> float:
        subscribers = {(one.publication, one.name): one for one in self._subscribers.of()}
        found = await self._database.aread(handoff_backlog.look, list(subscribers)) if subscribers else {}
        self._ready = [subscribers[place] for place, look in found.items() if look.ready]
        dues = [look.due_us / MICROSECONDS for look in found.values() if look.due_us is not None]
        later = [due for due in dues if due > 0]
        return min([LONGEST_PAUSE, *later, *([PAUSE_WITH_BACKLOG] if dues else [])])

    async def batch(self) -> bool:
        """Admit one batch of each subscriber; return whether any of them was full."""
        if monotonic() - self._folded > FOLD_INTERVAL:
            while await self._lease.run(subscriptions.fold_counts):
                pass
            self._folded = monotonic()
        more = []
        for subscriber in self._ready:
            if await self._admit(subscriber):
                more.append(subscriber)
        self._ready = more
        return bool(more)

    async def _admit(self, subscriber: Subscriber) -> bool:
        place = (subscriber.publication, subscriber.name)
        waiting = await self._database.aread(handoff_backlog.due, *place, MOST)
        if not waiting:
            return False
        items = await asyncio.to_thread(lambda: [(one, subscriber.readmitted(one)) for one in waiting])
        published = await self._lease.run(
            handoff_backlog.admit_waiting, subscriber.subscription, items, self._known_queues
        )
        reached("publish.backlog_after_commit")
        log_failures(published.failures)
        if published.work:
            self._publish((), Effects(work=published.work))
        return len(waiting) == MOST and bool(published.admitted or published.failures)
