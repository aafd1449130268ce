"""How a node leaves the cluster: it unregisters, or its lease is kept for bodies that hold permits and still run."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from windlass import loggers
from windlass.domain.job import Claim
from windlass.engine.attempt import Attempt
from windlass.errors import StoreUnavailableError
from windlass.maintenance.heartbeat import Heartbeat
from windlass.maintenance.permit_keeper import PermitKeeper
from windlass.node_engine import NodeEngine
from windlass.parts import Parts
from windlass.runtime.error_handling import ErrorHandling
from windlass.runtime.failpoints import reached
from windlass.runtime.service_errors import ServiceErrors
from windlass.stores.channels import WORK
from windlass.stores.database import Database
from windlass.stores.notifier import EVERYTHING, payload_of
from windlass.stores.plans import permits

logger = loggers.logger("windlass.worker")

TIMEOUT = 5.0
"""Seconds that a drain waits for the store to unregister the node."""
FLUSH_TIMEOUT = 10.0
"""Seconds that a drain waits for outcomes to be written."""
MAX_NAMED = 20
"""Number of jobs that one log line names."""


class Departure:
    """The last steps of one node's drain."""

    def __init__(
        self, parts: Parts, heartbeat: Heartbeat, pulse: Database, engine: NodeEngine, asked_to_drain: asyncio.Event
    ) -> None:
        self._parts = parts
        self._heartbeat = heartbeat
        self._pulse = pulse
        self._slots = engine.slots
        self._lingering = engine.lingering
        self._completer = engine.completer
        self._asked_to_drain = asked_to_drain
        self.loss: StoreUnavailableError | None = None
        """Why the node drains, if its store was deleted or replaced: the store is not used any more."""
        self._keeper: PermitKeeper | None = None
        self._claims: dict[permits.Body, Claim] = {}

    def store_lost(self, reason: str) -> None:
        """Drain without waiting for running jobs: their outcomes cannot be written."""
        if self.loss is not None:
            return
        self.loss = StoreUnavailableError(reason, lasting=True)
        logger.error("node %s shuts down, its store is lost: %s", self._heartbeat.node.id, reason)
        self._slots.force()
        self._asked_to_drain.set()

    async def flushed(self, errors: ServiceErrors) -> bool:
        """Wait until every outcome is written; return False if some are not."""
        if self.loss:
            return self._none_unwritten()
        try:
            if await asyncio.wait_for(self._completer.flushed(), FLUSH_TIMEOUT):
                return True
        except TimeoutError:
            pass
        why = errors.text() or "the store does not answer"
        logger.error("%s: some outcomes were not written; these jobs run again elsewhere", why)
        return False

    def _none_unwritten(self) -> bool:
        jobs = sorted(job for job, _ in self._completer.unwritten)
        if jobs:
            named = ", ".join(jobs[:MAX_NAMED]) + (", …" if len(jobs) > MAX_NAMED else "")
            logger.error("%d outcomes cannot be written because the store is lost: jobs %s", len(jobs), named)
        return not jobs

    async def unregister(self) -> bool:
        """Unregister the node; return False if the store does not answer. Its lease is kept if bodies hold permits."""
        if self.loss:
            await self._heartbeat.astop()
            self._close_pulse()
            return False
        if self._lingering.attempts():
            try:
                await asyncio.wait_for(asyncio.to_thread(self._keep), TIMEOUT)
            except Exception as error:  # noqa: BLE001 - without the store the lease expires
                logger.error("could not keep the permits of bodies that still run: %s", self._describe(error))
        await self._heartbeat.astop()
        try:
            await asyncio.wait_for(asyncio.to_thread(self._sign_off), TIMEOUT)
            await asyncio.wait_for(self._parts.database.aclose_loop(), TIMEOUT)
        except TimeoutError:
            logger.error(
                "the store does not answer: node %s shuts down without unregistering; its lease will expire",
                self._heartbeat.node.id,
            )
            return False
        return True

    def abandon(self) -> None:
        """Stop beating after the node's loop has ended, so that others recover its jobs."""
        self._heartbeat.stop()
        self._close_pulse()

    def loop_closed(self) -> None:
        """Handle the closed loop: what ran on it has ended, and its notifications are not delivered."""
        for attempt in self._lingering.attempts():
            if attempt.thread is None or attempt.thread.ended:
                self._ended(attempt)

    def _keep(self) -> None:
        kept = self._parts.database.read(permits.kept_by, self._heartbeat.node.id)
        if not kept:
            return
        parts, node = self._parts, self._heartbeat.node.id
        database = parts.database.apart(outlives=True)
        errors = ErrorHandling(describe=self._describe)
        owns = database is not parts.database
        freed = partial(self._freed, database)
        self._keeper = keeper = PermitKeeper(database, node, parts.settings.node, freed, errors, closes=owns)
        parts.keepers[:] = [*(known for known in parts.keepers if known.alive), keeper]
        self._claims = {_body(attempt): attempt.claim for attempt in self._lingering.attempts()}
        self._lingering.hand_over(self._ended)
        keeper.keep(kept)
        going_on = {_body(attempt) for attempt in self._lingering.attempts()}
        for body in kept:
            if body not in going_on:
                keeper.ended(body)

    def _ended(self, attempt: Attempt) -> None:
        if self._keeper is not None:
            self._keeper.ended(_body(attempt))

    def _freed(self, database: Database, bodies: Sequence[permits.Body]) -> None:
        """Wake nodes that wait for these permits. A file is watched, so that it needs no notification."""
        coordinator = self._parts.coordinator
        if coordinator is None:
            database.notify(WORK, payload_of("keeper", [EVERYTHING]))
            return
        for claim in (self._claims[body] for body in bodies if body in self._claims):
            coordinator.notify_new_work(claim.queue, claim.priority)

    def _sign_off(self) -> None:
        try:
            reached("drain.before_sign_off")
            if self._keeper is None:
                self._heartbeat.unregister()
        except Exception as error:  # noqa: BLE001 - the lease will expire
            logger.warning("could not unregister node %s: %s", self._heartbeat.node.id, self._describe(error))
        finally:
            self._close_pulse()

    def _close_pulse(self) -> None:
        if self._pulse is not self._parts.database:
            self._pulse.close()

    def _describe(self, error: BaseException) -> str:
        return self._parts.sanitizer.sanitize(error)


def _body(attempt: Attempt) -> permits.Body:
    return permits.Body(attempt.claim.job_id, attempt.claim.fence)
