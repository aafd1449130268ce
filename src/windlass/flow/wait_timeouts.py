"""The service that ends waits whose signal did not come in time; every node runs it."""

from __future__ import annotations

from typing import Final

from windlass.domain.clock import MICROSECONDS
from windlass.domain.ended import NO_EFFECTS
from windlass.feature import NodeTools
from windlass.runtime.service import Service
from windlass.stores.plans import signal_waits

LONGEST_PAUSE: Final = 5.0
"""Seconds between two reads of the deadlines: jobs that other processes enqueue may have an earlier one."""
SHORTEST_PAUSE: Final = 0.02
"""Seconds before the next read while another node ends the waits that are overdue."""


class WaitTimeouts(Service):
    """Wakes up for the first deadline. Without waiting jobs it reads one index entry every few seconds."""

    def __init__(self, tools: NodeTools) -> None:
        super().__init__("timeouts of signals", tools.errors)
        self._tools = tools

    async def tick(self) -> float | None:
        """End the waits that are overdue; sleep until the next deadline."""
        remaining_us = await self._tools.database.aread(signal_waits.next_deadline)
        if remaining_us is None or remaining_us > 0:
            return LONGEST_PAUSE if remaining_us is None else min(remaining_us / MICROSECONDS, LONGEST_PAUSE)
        effects = await self._tools.database.arun(signal_waits.expire)
        if effects is NO_EFFECTS:
            return SHORTEST_PAUSE
        self._tools.publish((), effects)
        return 0.0
