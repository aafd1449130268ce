"""Calls of `on_progress`: functions of batches, called with their progress after the commit that counted it."""

from __future__ import annotations

import asyncio
import inspect

from windlass.events.types import BatchProgressed
from windlass.submission.hooks import hook_of
from windlass.submission.registry import Registry


class ProgressCalls:
    """A subscriber that calls the functions of batches, in order, on the thread of subscribers."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def __call__(self, event: BatchProgressed) -> None:
        """Call the function of the batch, if it has one. What it raises is logged, like a subscriber's error."""
        if event.on_progress is None:
            return
        answer = hook_of(self._registry, event.on_progress)(event.progress)
        if inspect.iscoroutine(answer):
            asyncio.run(answer)
