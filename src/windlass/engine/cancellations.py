"""Stops running jobs whose claim is lost: canceled, or taken over by another node.

A cancel in this process stops its job at once. A notification is only a hint, which any client may have sent: the jobs
it names are looked up in the store, by id and fence, before one of them is stopped. After a notification without ids,
and from time to time, the node compares everything it runs with its claims in the store.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from windlass import loggers
from windlass.domain.clock import monotonic
from windlass.domain.job import Claim
from windlass.engine.attempt import Attempt
from windlass.engine.slots import Slots
from windlass.runtime.error_handling import ErrorHandling
from windlass.runtime.service import Service
from windlass.stores.database import Database
from windlass.stores.dialect import Claimed
from windlass.stores.node_identity import NodeIdentity
from windlass.stores.plans import jobs

logger = loggers.logger("windlass.cancel")

STRAY_AFTER = 40.0
"""Seconds after which a claim that only the store knows of is started here: no answer can be in transit then."""
AT_MOST_EVERY = 0.25
"""Least seconds between two queries, however many notifications arrive."""


class Cancellations(Service):
    """Stops attempts whose jobs are canceled."""

    def __init__(
        self,
        database: Database,
        slots: Slots,
        identity: NodeIdentity,
        every: float,
        errors: ErrorHandling,
    ) -> None:
        super().__init__("cancellations", errors, slots.canceled.bell)
        self._database = database
        self._slots = slots
        self._identity = identity
        self._every = every
        self._looked = float("-inf")
        self._next_full_look = float("-inf")
        self._all_in_question = False
        self._strays: dict[tuple[str, int], float] = {}

    def canceled(self, ids: Collection[str]) -> None:
        """Stop these jobs: this process has canceled them, and the cancel is committed. On the loop only."""
        here = [attempt for attempt in self._slots.attempts() if attempt.claim.job_id in ids]
        self._end(here)
        self._slots.canceled.add(set(ids) - {attempt.claim.job_id for attempt in here})

    def hinted(self, ids: Collection[str]) -> None:
        """Query the store about jobs that are reported as canceled; without ids, about all that run here.

        On the loop only. A job that is not here may come with a claim in progress, and is looked up then.
        """
        if ids:
            here = {attempt.claim.job_id for attempt in self._slots.attempts()}.intersection(ids)
            self._slots.canceled.report(ids)
            if here:
                self._slots.canceled.question(here)
        else:
            self._all_in_question = True
            self.wake()

    async def tick(self) -> float | None:
        """Look up the reported jobs; all running jobs from time to time, or after a notification without ids."""
        now = monotonic()
        next_look = self._looked + AT_MOST_EVERY
        if now < min(next_look, self._next_full_look):
            return min(next_look, self._next_full_look) - now
        self._looked = now
        named = self._slots.canceled.take_in_question()
        if named and now < self._next_full_look and not self._all_in_question:
            await self._ask_about(named)
        elif self._all_in_question or now >= self._next_full_look:
            self._all_in_question = False
            self._next_full_look = float("-inf")
            await self._compare()
            self._next_full_look = now + self._every
        return max(self._next_full_look - monotonic(), 0)

    async def _ask_about(self, ids: set[str]) -> None:
        """Look up all of them in one read; after an error the next query covers everything."""
        full_look, self._next_full_look = self._next_full_look, float("-inf")
        before = [attempt for attempt in self._slots.attempts() if attempt.claim.job_id in ids]
        held = await self._database.aread(jobs.fences_of, sorted(ids))
        self._next_full_look = full_look
        self._end_gone(before, held)

    async def _compare(self) -> None:
        before, known = self._slots.attempts(), self._slots.held()
        claims = await self._database.aread(jobs.claims_of, self._identity.id)
        held = {(claim.job_id, claim.fence) for claim in claims}
        self._end_gone(before, held)
        known |= self._slots.held()
        self._take_up([claim for claim in claims if (claim.job_id, claim.fence) not in known])

    def _take_up(self, strays: Sequence[Claim]) -> None:
        """Start claims in this node's name that it does not know.

        Their answer was lost, and no other node runs them.
        """
        now = monotonic()
        since = self._strays
        self._strays = {(claim.job_id, claim.fence): since.get((claim.job_id, claim.fence), now) for claim in strays}
        old = [claim for claim in strays if now - self._strays[claim.job_id, claim.fence] > STRAY_AFTER]
        if old:
            logger.warning(
                "%d jobs are claimed by this node but the answer of the claim was lost; starting them now", len(old)
            )
            self._slots.accept(Claimed(old, {}), now)

    def _end_gone(self, before: Iterable[Attempt], held: Collection[tuple[str, int]]) -> None:
        """Stop attempts that ran before the query and whose claims the store no longer has.

        They count as canceled, unless the job has another fence by now, or this node lost the id under which it started
        them.
        """
        still, taken_over = self._slots.attempts(), {job for job, _ in held}
        gone = [attempt for attempt in before if _key(attempt) not in held and attempt in still]
        for attempt in gone:
            context = attempt.context
            if context is not None and (context.node != self._identity.id or attempt.claim.job_id in taken_over):
                context.lose_claim()
        self._end(gone)

    def _end(self, attempts: Collection[Attempt]) -> None:
        for attempt in attempts:
            claim = attempt.claim
            logger.info(
                "job %s (%s) was canceled or taken over by another node; stopping it", claim.job_id, claim.target
            )
            self._slots.cancel(attempt)


def _key(attempt: Attempt) -> tuple[str, int]:
    return attempt.claim.job_id, attempt.claim.fence
