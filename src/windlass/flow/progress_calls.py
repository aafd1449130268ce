"""Functions of batches: `on_progress` is called after the commit that counted, `when_batch` by guarded followers."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from windlass.domain.batch import OF_BATCH, BatchProgress
from windlass.domain.states import TERMINAL
from windlass.errors import TargetNotAllowedError
from windlass.events.types import BatchProgressed
from windlass.feature import Feature, GuardSource
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan
from windlass.stores.plans import batches
from windlass.submission.predicates import Predicates
from windlass.submission.registry import Registry
from windlass.submission.target import Known


def feature() -> Feature:
    """Return the guards about batches as a feature."""
    return Feature("guards of batches", guards=(GuardSource(OF_BATCH, _read_ended),))


def _read_ended(dialect: Dialect, parents: Sequence[str]) -> Plan[Mapping[str, Any]]:
    """Return the progress of batches that have ended."""
    found: dict[str, BatchProgress] = {}
    for batch in parents:
        state = yield from batches.state(dialect, batch, autocommit=True)
        if state is not None and state.status in TERMINAL:
            found[batch] = BatchProgress.of(state.counts)
    return found


class ProgressCalls:
    """A subscriber that calls the functions of batches, in order, on the thread of subscribers."""

    def __init__(self, registry: Registry) -> None:
        self._predicates = Predicates(registry)
        self._registry = registry

    def __call__(self, event: BatchProgressed) -> None:
        """Call the function of the batch, if it has one. What it raises is logged, like a subscriber's error."""
        if event.on_progress is None:
            return
        known = self._predicates.resolve(event.on_progress)
        if not isinstance(known, Known):
            raise TargetNotAllowedError(f"on_progress of batch {event.batch_id} is not called: {known.error}")
        answer = known.ready(self._registry.instances)(event.progress)
        if inspect.iscoroutine(answer):
            asyncio.run(answer)
