"""How long to wait, claim a batch, pass it on."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

from windlass.domain.clock import monotonic
from windlass.domain.poll_interval import WINDOW, PollObservation
from windlass.domain.priority import MAX_PRIORITY
from windlass.engine.slots import Coordinator
from windlass.runtime.error_handling import ErrorHandling
from windlass.runtime.failpoints import reached
from windlass.runtime.service import Service
from windlass.spi import PollingStrategy
from windlass.stores.claim_order import ClaimRequest, Head, Trust
from windlass.stores.database import Database
from windlass.stores.dialect import Claimed
from windlass.stores.plans import claims, jobs, queues
from windlass.stores.plans.limits import CircuitChange

LANES_REST = 1.0
"""Seconds between two rounds through more lanes than are looked at in one go, if a round took no time to speak of."""
BUSY_FRESH = 0.1
"""Seconds that heads are believed at most while claims come back full and something has changed: where a store only
tells that somebody wrote, that is all the time, and mostly this node itself."""
UNSURE_FOR = 10.0
"""How long after a claim without an answer the store may still be about to carry it out."""
UNSURE_PAUSE = 1.0
CONTENTION_PAUSE = 0.01
"""When due jobs are there but others hold them all."""
SMALLEST_CHUNK = 8
MICROSECONDS = 1_000_000


class PollerOptions(NamedTuple):
    """What a poller asks for and in whose name."""

    batch_size: int
    boost_us: int
    serves: Callable[[str], bool]
    knows: Callable[[str], bool]
    fresh: float
    """Seconds that heads are believed; a paused queue is left alone within that time."""


class Poller(Service):
    """Claims while there is room and work; sleeps until a wakeup, the next due time, or the strategy's delay."""

    def __init__(
        self,
        node: str,
        database: Database,
        coordinator: Coordinator,
        strategy: PollingStrategy,
        options: PollerOptions,
        errors: ErrorHandling,
    ) -> None:
        super().__init__("poller", errors)
        self.node = node
        self._database = database
        self._coordinator = coordinator
        self._strategy = strategy
        self._options = options
        self._heads: dict[tuple[str, int, str | None], int] = {}
        self._queues: frozenset[str] = frozenset()
        self._limited: frozenset[str] = frozenset()
        self._held = False
        self._ended_meanwhile = False
        self._next_lane = queues.FIRST_LANE
        self._many_lanes = False
        self._turn = 0
        self._trust: Trust | None = None
        self._lanes_since = monotonic()
        self.shut: dict[str, int] = {}
        """Circuits that let nothing through, as far as is known here, and until when by the store's clock."""
        self._refreshed = float("-inf")
        self._stale = False
        self._claims_full = False
        self._store_now = (0, 0.0)
        self._recent: deque[tuple[int, int]] = deque(maxlen=WINDOW)
        self._last_job = monotonic()
        self._woken = False
        self._full = False
        self._widening = 1
        self._unsure_since: float | None = None

    # ------------------------------------------------------------------ being told

    def told_all(self, work: Iterable[tuple[str, int]]) -> None:
        """There is new work at these levels of queues, perhaps due now. On the loop only."""
        self._woken = True
        for queue, level in work:
            if queue in self._queues:
                key = (queue, level, None)
                self._heads[key] = min(self._heads.get(key, self.store_now()), self.store_now())
                self._stale |= self._claims_full  # it may be in a lane, found by the next look
            else:
                self._stale = True  # a queue not seen before, or a paused one
        self.wake()

    def told_anything(self) -> None:
        """Something changed, nobody knows what. On the loop only."""
        self._woken = True
        self._stale = True
        self.wake()

    def expect(self, heads: Iterable[Head]) -> None:
        """Jobs of this node will be due then: retries, snoozes. On the loop only."""
        for head in heads:
            if head.queue not in self._queues:
                self._stale = True  # paused meanwhile, or not seen before
            elif self._options.serves(head.queue):
                key = (head.queue, head.level, head.lane)
                self._heads[key] = min(self._heads.get(key, head.due_at), head.due_at)
        self.wake()

    def circuits_changed(self, changes: Iterable[CircuitChange]) -> None:
        """Circuits opened or closed by what was written here. On the loop only."""
        for change in changes:
            self.shut.pop(change.service, None)
            if change.after.opens_at is not None:
                self.shut[change.service] = change.after.opens_at
        self.told_anything()

    def store_now(self) -> int:
        """What the store's clock says, about."""
        now, at = self._store_now
        return now + int((monotonic() - at) * MICROSECONDS)

    def places_freed(self, lanes: Iterable[tuple[str, str]]) -> None:
        """Jobs of these lanes, and perhaps of others behind the same gates, may pass now. On the loop only."""
        now = self.store_now()
        for queue, lane in lanes:
            levels = [(queue, level, lane) for level in range(MAX_PRIORITY + 1)]
            self._heads.update({key: now for key in levels if key in self._heads})
        if self._held:
            self._stale = True
        self.wake()

    def jobs_ended(self) -> None:
        """Jobs ended on other nodes, which may have given back what some wait for here. On the loop only."""
        if self._held:
            self.told_anything()
        else:
            self._ended_meanwhile = True

    def slot_freed(self) -> None:
        """Claim again, if it was for want of room that nothing was claimed."""
        if self._full and self._coordinator.room() > 0:
            self._full = False
            self.wake()

    # ------------------------------------------------------------------ one poll

    async def tick(self) -> float | None:
        """Claim once and say how long to sleep."""
        if self._unsure_since is not None:
            await self._take_up(self._unsure_since)
        wanted = min(self._coordinator.room(), self._options.batch_size)
        if wanted <= 0:
            self._full = True
            return UNSURE_PAUSE  # a slot that frees up wakes sooner; an outcome that gets written does not
        if monotonic() - self._refreshed > self._believed_for():
            await self._refresh()
        due = self._due()
        got = await self._claim(due, wanted) if due else 0
        seen = {(head.queue, head.level, head.lane) for head in due}
        self._recent.append((wanted, got))
        if got:
            self._last_job = monotonic()
        self._claims_full = got == wanted
        if got == wanted:
            self._widening = 1
            return 0
        await asyncio.sleep(0)  # what was claimed starts before anything else is asked
        await self._refresh()
        if still := self._due():  # the claim was cut short, or other nodes hold these rows just now
            self._widening *= 2
            fresh = any((head.queue, head.level, head.lane) not in seen for head in still)
            return 0 if got or fresh else CONTENTION_PAUSE
        self._widening = 1
        if self._next_lane != queues.FIRST_LANE:  # there are more lanes, and the next ones may have work
            return 0
        return self._pause()

    async def anything_due(self) -> bool:
        """Whether a job waits that could be claimed now; all lanes are looked at."""
        self._next_lane = queues.FIRST_LANE
        await self._refresh()
        while not self._due() and self._next_lane != queues.FIRST_LANE:
            await self._refresh()
        return bool(self._due())

    async def claim_next(self) -> bool:
        """Claim the one job that is next now, whatever the pace; False when there is none. For who polls by hand."""
        return await self.anything_due() and await self._claim(self._due(), 1) > 0

    async def _claim(self, due: list[Head], wanted: int) -> int:
        request = ClaimRequest(
            node=self.node,
            heads=due,
            wanted=wanted,
            chunk=self._chunk(len(due), wanted),
            boost_us=self._options.boost_us,
            limited=self._limited,
            turn=self._turn,
            trust=self._trust,
        )
        self._turn += 1
        try:
            claimed = await self._ask(request)
        except Exception:
            self._unsure_since = monotonic()
            raise
        self._trust = claimed.trust
        if claimed.claims:
            reached("claim.after_commit")
            self._coordinator.accept(claimed, monotonic())
        return len(claimed.claims)

    async def _ask(self, request: ClaimRequest) -> Claimed:
        """Claim; where gates had less room than they used to, once more with a look at them first."""
        try:
            return await self._database.arun(claims.claim, request)
        except claims.TrustError:
            return await self._database.arun(claims.claim, request._replace(trust=None))

    async def _take_up(self, since: float) -> None:
        """Look for jobs claimed in this node's name by a claim whose answer was lost: nobody else ever would.

        What was held before the store is asked is left out: it may be over by the time the answer is here.
        """
        settled = monotonic() - since > UNSURE_FOR
        held = self._coordinator.held()
        found = await self._database.aread(jobs.claims_of, self.node)
        orphans = [claim for claim in found if (claim.job_id, claim.fence) not in held]
        if orphans:
            self._coordinator.accept(Claimed(orphans, {}), monotonic())
        if settled and self._unsure_since == since:
            self._unsure_since = None

    def _believed_for(self) -> float:
        """How old what is known may get; while it finds all it asks for, a node looks at further lanes soon."""
        if self._claims_full:
            return min(BUSY_FRESH, self._options.fresh) if self._stale or self._many_lanes else self._options.fresh
        return 0.0 if self._stale else self._options.fresh

    def _chunk(self, levels: int, wanted: int) -> int:
        """Rows to read of each level.

        All that is wanted of one or two, a share of many. Powers of two, for few statements.
        """
        share = wanted if levels <= 2 else max(SMALLEST_CHUNK, 2 * wanted // levels) * self._widening
        return 1 << (min(share, wanted) - 1).bit_length()

    async def _refresh(self) -> None:
        self._refreshed = monotonic()
        self._ended_meanwhile = self._stale = False
        begins = self._next_lane == queues.FIRST_LANE
        if begins:
            self._lanes_since = monotonic()
        options = self._options
        found = await self._database.aread(queues.heads, options.serves, options.knows, self._next_lane)
        self._store_now = (found.now, monotonic())
        self._queues, self._limited = found.queues, found.limited
        self._held = found.held or (self._held and not begins)
        if self._ended_meanwhile:  # what is known now may be older than that
            self.jobs_ended()
        self.shut = dict(found.shut)
        self._many_lanes = not begins or found.after != queues.FIRST_LANE
        self._next_lane = found.after
        self._heads = {(head.queue, head.level, head.lane): head.due_at for head in found.heads}

    def _due(self) -> list[Head]:
        now = self.store_now()
        return [Head(queue, level, due, lane) for (queue, level, lane), due in self._heads.items() if due <= now]

    def _pause(self) -> float:
        """The strategy's delay, or the time until the next job is due, whichever is shorter."""
        observation = PollObservation(
            recent=tuple(self._recent),
            idle_for=monotonic() - self._last_job,
            utilisation=self._coordinator.utilisation,
            woken=self._woken,
        )
        self._woken = False
        delay = self._strategy.next_delay(observation)
        if self._unsure_since is not None:
            delay = min(delay, UNSURE_PAUSE)
        if self._many_lanes:
            delay = min(delay, max(LANES_REST, 10 * (monotonic() - self._lanes_since)))
        if self._heads:
            delay = min(delay, (min(self._heads.values()) - self.store_now()) / MICROSECONDS)
        return max(delay, 0.0)
