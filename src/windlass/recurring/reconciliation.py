"""Reconciliation: the schedules that an application declares are stored when one of its workers starts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

from windlass import loggers
from windlass.domain.clock import monotonic
from windlass.domain.stored_schedule import Declaration, ScheduleState
from windlass.recurring.declared_schedules import DeclaredSchedules
from windlass.runtime.verbs import Verb
from windlass.stores.database import Database
from windlass.stores.plans import schedule_upkeep, schedules

logger = loggers.logger("windlass.schedules")

T = TypeVar("T")

RETRY_INTERVAL: Final = 30.0
"""Seconds after which keys that could not be taken are tried again."""


class Reconciliation:
    """Stores what an application declares, in place, and tries keys again that others hold."""

    def __init__(self, declared: DeclaredSchedules, database: Database) -> None:
        self._declared = declared
        self._database = database
        self._refused: list[Declaration] = []
        self._retry_at = 0.0

    def announce(self) -> Verb[None]:
        """Store which keys the digest in the node's row stands for: before that row is there."""
        for keys in _parts(self._declared.keys):
            yield self._database.run, self._database.arun, (schedule_upkeep.declare, self._declared.digest, keys)

    def run(self, since: int | None = None) -> Verb[None]:
        """Store everything that is declared; new schedules begin at `since`, or now."""
        self._refused = yield from self._store(self._declared.declarations(), since)
        self._retry_at = monotonic() + RETRY_INTERVAL

    def retry(self) -> Verb[None]:
        """Try the keys again that could not be taken, from time to time."""
        if self._refused and monotonic() >= self._retry_at:
            self._refused = yield from self._store(self._refused, None, quiet=True)
            self._retry_at = monotonic() + RETRY_INTERVAL

    def _store(
        self, declarations: Sequence[Declaration], since: int | None, *, quiet: bool = False
    ) -> Verb[list[Declaration]]:
        """Store them in bounded transactions; return those whose keys are taken."""
        refused: list[Declaration] = []
        for part in _parts(declarations):
            arguments = (schedules.store, part, self._declared.origin, since)
            stored: schedules.Stored = yield self._database.run, self._database.arun, arguments
            refused += [one for one in part if one.key in stored.held or one.key in stored.foreign]
            if stored.written:
                logger.info("stored %d schedules that are new or have changed", len(stored.written))
            for row in stored.written:
                if row.state == ScheduleState.ENDED:
                    logger.warning(
                        "schedule %s has no tick any more, and does not fire; take it out of the code", row.key
                    )
            if not quiet:
                _log_refused(stored)
        return refused


def _parts(items: Sequence[T]) -> list[Sequence[T]]:
    """Return the items in parts that one transaction stores."""
    return [items[start : start + schedules.AT_ONCE] for start in range(0, len(items), schedules.AT_ONCE)]


def _log_refused(stored: schedules.Stored) -> None:
    for key, holder in sorted(stored.held.items()):
        logger.error(
            "schedule %s is not stored: job %s holds its key as its business key; it is tried again every %.0f s",
            key,
            holder.id,
            RETRY_INTERVAL,
        )
    for key, origin in sorted(stored.foreign.items()):
        logger.error(
            "schedule %s is not stored: application %s declares the same key; give key= to one of them, or remove it "
            "if that application no longer exists: windlass schedule remove",
            key,
            origin or "without a name",
        )
