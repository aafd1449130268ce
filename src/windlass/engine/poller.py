"""The poller: queries the store, claims a batch, passes it on and waits, as the outlook decides step by step."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from windlass.domain.clock import monotonic
from windlass.domain.dispatch_lag import RecentLags
from windlass.domain.job import Claim
from windlass.engine.damage import report_nameless
from windlass.engine.known_work import KnownWork
from windlass.engine.poll_steps import ClaimDue, Look, Pause, Rest
from windlass.engine.slots import Slots
from windlass.runtime.error_handling import ErrorHandling
from windlass.runtime.failpoints import reached
from windlass.runtime.service import Service
from windlass.spi import PollingStrategy
from windlass.stores.claim_order import ClaimRequest, Trust
from windlass.stores.database import Database
from windlass.stores.dialect import Claimed
from windlass.stores.node_identity import NodeIdentity
from windlass.stores.plans import claims, jobs, queues

LAGS_OF_A_CLAIM = 64
"""If a claim returns more jobs than this, the lags of only some of them are measured."""


class PollerOptions(NamedTuple):
    """What a poller claims."""

    batch_size: int
    serves: Callable[[str], bool]
    knows: Callable[[str], bool]


class Poller(Service):
    """Claims while there is room and work; sleeps until a wakeup, the next due time, or the strategy's delay."""

    def __init__(
        self,
        identity: NodeIdentity,
        database: Database,
        slots: Slots,
        work: KnownWork,
        strategy: PollingStrategy,
        options: PollerOptions,
        errors: ErrorHandling,
    ) -> None:
        super().__init__("poller", errors, work.bell)
        self._identity = identity
        self._database = database
        self._slots = slots
        self._work = work
        self._strategy = strategy
        self._options = options
        self._turn = 0
        self._trust: Trust | None = None
        self.lags = RecentLags(monotonic())
        """How long after their due times jobs were claimed here lately."""

    async def tick(self) -> float:
        """Poll once; return the seconds to sleep."""
        work = self._work
        if work.outlook.claim_in_doubt_since is not None:
            await self._recover(work.outlook.claim_in_doubt_since)
        work.outlook = work.outlook.begin_poll(min(self._slots.room(), self._options.batch_size), monotonic())
        while True:
            match work.outlook.next_action(monotonic()):
                case Look():
                    await self._look()
                case ClaimDue() as claim:
                    jobs = await self._claim(claim) if claim.heads else []
                    marks = self._database.dialect.keeps_dead_entries
                    work.outlook = work.outlook.after_claim(claim, jobs, monotonic(), marks=marks)
                    if len(jobs) < claim.wanted:
                        await asyncio.sleep(0)  # claimed jobs start before the next query
                case Pause(seconds):
                    return seconds
                case Rest(at_most):
                    return max(min(self._strategic_delay(), at_most), 0.0)

    async def anything_due(self) -> bool:
        """Return whether a job waits that could be claimed now; all lanes are checked."""
        work = self._work
        work.outlook = work.outlook.from_first_lane()
        await self._look()
        while not work.outlook.due(monotonic()) and work.outlook.lanes_remain:
            await self._look()
        return bool(work.outlook.due(monotonic()))

    async def claim_next(self) -> bool:
        """Claim the next due job; return whether there was one. For polling by hand."""
        if not await self.anything_due():
            return False
        return bool(await self._claim(self._work.outlook.claim(1, monotonic())))

    async def _look(self) -> None:
        work, options = self._work, self._options
        work.outlook = work.outlook.begin_look(monotonic())
        after, starts = work.outlook.answer.after, work.outlook.low_water.look_starts
        work.after_look(await self._database.aread(queues.heads, options.serves, options.knows, after, starts))

    async def _claim(self, claim: ClaimDue) -> list[Claim]:
        """Claim, and pass the jobs on."""
        request = ClaimRequest(
            node=self._identity.id,
            heads=claim.heads,
            wanted=claim.wanted,
            chunk=claim.chunk,
            boost_us=self._work.outlook.boost_us,
            limited=self._work.outlook.answer.limited,
            turn=self._turn,
            trust=self._trust,
            others=claim.others,
        )
        self._turn += 1
        try:
            claimed = await self._ask(request)
        except Exception:
            self._work.outlook = self._work.outlook.claim_failed(monotonic())
            raise
        self._trust = claimed.trust
        report_nameless(claimed.nameless)
        if claimed.claims:
            reached("claim.after_commit")
            received = monotonic()
            self._slots.accept(claimed, received)
            weight = (len(claimed.claims) - 1) // LAGS_OF_A_CLAIM + 1
            self.lags.count(_lags(claimed, weight), received, weight)
        return claimed.claims

    async def _ask(self, request: ClaimRequest) -> Claimed:
        """Claim; if gates had less room than assumed, claim once more with their current state."""
        try:
            return await self._database.arun(claims.claim, request)
        except claims.TrustError:
            return await self._database.arun(claims.claim, request._replace(trust=None))

    async def _recover(self, since: float) -> None:
        """Take over jobs that a claim without an answer took in this node's name: no other node would.

        Jobs held before the query are left out: they may have ended by the time of the answer.
        """
        asked_at = monotonic()
        held = self._slots.held()
        found = await self._database.aread(jobs.claims_of, self._identity.id)
        orphans = [claim for claim in found if (claim.job_id, claim.fence) not in held]
        if orphans:
            self._slots.accept(Claimed(orphans, {}), monotonic())
        self._work.outlook = self._work.outlook.after_recovery(since, asked_at)

    def _strategic_delay(self) -> float:
        observation = self._work.outlook.observation(monotonic(), self._slots.utilisation)
        self._work.outlook = self._work.outlook.rested()
        return self._strategy.next_delay(observation)


def _lags(claimed: Claimed, every: int) -> list[int]:
    """Return how long after its job was due each claim came, in microseconds; no job is due before it is created.

    Of a large batch only every so many are looked at: within a level they are in the order of their due times.
    """
    payloads, lags = claimed.payloads, []
    for claim in claimed.claims[::every]:
        payload = payloads.get(claim.job_id)
        times = (claim.due_at, claim.due_at if payload is None else payload.created_at)
        if all(isinstance(time, int) for time in times):  # a damaged row may have anything there
            lags.append(claim.picked_at - max(times))
    return lags
