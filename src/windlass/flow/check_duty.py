"""The checks of flows, by one node at a time: followers and groups that a crash has left behind are put right."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from windlass import loggers
from windlass.domain.ended import Effects, Ended
from windlass.runtime.duty import Duty
from windlass.runtime.error_handling import ErrorHandling
from windlass.stores.lease_holder import LeaseHolder
from windlass.stores.plans import flow_checks, flows

logger = loggers.logger("windlass.flows")


class FlowChecks(Duty):
    """Checks what was left to be carried on, and a window of followers and groups in each pass."""

    def __init__(
        self, lease: LeaseHolder, publish: Callable[[Sequence[Ended], Effects], int], errors: ErrorHandling
    ) -> None:
        super().__init__("checks of flows", lease, errors)
        self._lease = lease
        self._publish = publish
        self._followers_after = self._groups_after = flow_checks.FIRST_ID

    async def batch(self) -> bool:
        """Check once; return True while something is left to be carried on."""
        left = await self._lease.run(flow_checks.left_behind)
        if left:
            self._publish((), await self._lease.run(flows.carry_on, left))
            logger.info("carried on %d groups and %d operations of flows", len(left.groups), len(left.operations))
        missed = await self._lease.run(flow_checks.release_missed, self._followers_after)
        self._followers_after = missed.next_after
        self._publish((), missed.effects)
        if missed.found:
            logger.warning("the followers of %d ended jobs and groups had been left waiting; decided now", missed.found)
        stalled = await self._lease.run(flow_checks.recount, self._groups_after)
        self._groups_after = stalled.next_after
        self._publish((), stalled.effects)
        if stalled.found:
            logger.error("the counts of %d groups were wrong and are corrected; report this", stalled.found)
        return bool(left)
