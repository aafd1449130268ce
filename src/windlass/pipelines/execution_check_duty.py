"""The checks of executions, by one node at a time: wakes those that wait because of a crash or a bug."""

from __future__ import annotations

from windlass import loggers
from windlass.domain.identity import FIRST_ID
from windlass.feature import NodeTools
from windlass.runtime.duty import Duty
from windlass.stores.lease_holder import LeaseHolder
from windlass.stores.plans import execution_checks

logger = loggers.logger("windlass.pipelines")


class ExecutionChecks(Duty):
    """Checks a window of live executions in each pass."""

    def __init__(self, lease: LeaseHolder, tools: NodeTools) -> None:
        super().__init__("checks of executions", lease, tools.errors)
        self._lease = lease
        self._publish = tools.publish
        self._after = FIRST_ID

    async def batch(self) -> bool:
        """Check once; a pass is one window."""
        checked = await self._lease.run(execution_checks.wake_idle, self._after)
        self._after = checked.next_after
        self._publish((), checked.effects)
        if checked.found:
            logger.error(
                "%d executions or parts of them waited for nothing; they continue now; report this",
                checked.found,
            )
        return False
