"""The duty that checks flows: it corrects followers and groups after a crash."""

from __future__ import annotations

from windlass import loggers
from windlass.domain.identity import FIRST_ID
from windlass.feature import NodeTools
from windlass.runtime.duty import Duty
from windlass.stores.lease_holder import LeaseHolder
from windlass.stores.plans import flow_checks, operations

logger = loggers.logger("windlass.flows")


class FlowChecks(Duty):
    """Checks unfinished operations, and a window of followers and groups in each pass."""

    def __init__(self, lease: LeaseHolder, tools: NodeTools) -> None:
        super().__init__("checks of flows", lease, tools.errors)
        self._lease = lease
        self._publish = tools.publish
        self._follow_ups = tools.follow_ups
        self._followers_after = self._groups_after = FIRST_ID

    async def batch(self) -> bool:
        """Check once; return True while unfinished work remains."""
        unfinished = await self._lease.run(flow_checks.find_unfinished)
        if unfinished:
            carried = await self._lease.run(operations.carry_on, unfinished, self._follow_ups)
            self._publish(*carried)
            logger.info(
                "finished work on %d groups and %d operations of flows",
                len(unfinished.groups),
                len(unfinished.operations),
            )
        missed = await self._lease.run(flow_checks.release_missed, self._followers_after, self._follow_ups)
        self._followers_after = missed.next_after
        self._publish((), missed.effects)
        if missed.found:
            logger.warning(
                "followers of %d ended jobs and groups were still waiting; they are released or canceled now",
                missed.found,
            )
        stalled = await self._lease.run(flow_checks.recount, self._groups_after, self._follow_ups)
        self._groups_after = stalled.next_after
        self._publish((), stalled.effects)
        if stalled.found:
            logger.error("the counts of %d groups were wrong and are corrected; report this", stalled.found)
        return bool(unfinished)
