"""`windlass worker --reload`: runs a worker, and restarts it each time a source file has changed.

The worker knows which modules it has imported, watches their files, drains, and exits with a special code. A worker
that cannot start because of an error in the source is restarted when a file below the current folder has changed.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from windlass.cli.source_watch import INTERVAL, Stamp, changed, log_change, sources_below, stamps
from windlass.cli.supervisor import Supervisor
from windlass.runtime.processes.lifetime import how_it_ended
from windlass.worker import CLEAN

logger = logging.getLogger("windlass.reload")

RELOAD: Final = 4
"""Exit code of a worker that exits because a source file has changed."""


class Reloader(Supervisor):
    """Runs one worker after another until it is stopped."""

    def __init__(self, arguments: Sequence[str]) -> None:
        super().__init__(arguments, 1)

    async def _keep(self, slot: int) -> int:
        while True:
            code, asked = await self._one_life(slot)
            if self._asked.is_set():
                return self._end_code(code)
            if code == RELOAD:
                continue
            if asked:
                return code
            folder = os.getcwd()
            before = stamps(sources_below(folder))  # first: a change that follows the line below must be noticed
            logger.error("the worker %s; restarting it when a file below %s changes", how_it_ended(code), folder)
            await self._change_below(folder, before)
            if self._asked.is_set():
                return CLEAN

    async def _change_below(self, folder: str, before: dict[str, Stamp]) -> None:
        """Wait for a change, or for a signal."""
        while not self._asked.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._asked.wait(), INTERVAL)
            now = stamps(sources_below(folder))
            file = changed(before, now) or next((new for new in now if new not in before), None)
            if file is not None:
                log_change(file)
                return
