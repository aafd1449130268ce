"""The service that carries out unfinished work of its node's commits: counts of groups, cascades of many rows."""

from __future__ import annotations

from typing import Final

from windlass.feature import NodeTools
from windlass.runtime.failpoints import reached
from windlass.runtime.service import Service
from windlass.stores.plans import operations

GATHER: Final = 0.01
"""Seconds to wait after one transaction: many flushes count a busy group, and their counts are added together."""


class FlowCompletion(Service):
    """Runs one transaction after the other until no work remains. After a crash `FlowChecks` finds the rest."""

    def __init__(self, tools: NodeTools) -> None:
        super().__init__("flows", tools.errors, tools.unfinished.bell)
        self._tools = tools

    async def tick(self) -> float | None:
        """Carry out the next part."""
        unfinished = self._tools.unfinished.take()
        if not unfinished:
            return None
        reached("group.uncounted", lambda: bool(unfinished.groups))
        reached("operation.after_commit", lambda: bool(unfinished.operations))
        try:
            carried = await self._tools.database.arun(operations.carry_on, unfinished, self._tools.follow_ups)
        except BaseException:
            self._tools.unfinished.add(unfinished)
            raise
        self._tools.publish(*carried)
        return GATHER
