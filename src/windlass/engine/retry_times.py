"""When retries are due, as the store has it: read in the transaction that writes them, for those who listen."""

from __future__ import annotations

from collections.abc import Sequence

from windlass.engine.attempt import Attempt
from windlass.events.bus import EventBus
from windlass.events.types import JobRetrying
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan
from windlass.stores.plans import jobs


class RetryTimes:
    """A consequence of the completer; where nobody listens to `JobRetrying`, it concerns nobody and costs nothing."""

    def __init__(self, bus: EventBus) -> None:
        self._bus = bus

    def concerns(self, attempt: Attempt) -> bool:
        """Whether somebody will be told when the next attempt is due."""
        return attempt.verdict.outcome == "retried" and self._bus.wanted(JobRetrying)

    def read(self, dialect: Dialect, attempts: Sequence[Attempt]) -> Plan[None]:
        """Note when they are due. A plan that is run again notes it again."""
        due = yield from jobs.due_times(dialect, [attempt.claim.job_id for attempt in attempts])
        for attempt in attempts:
            attempt.due_again = due.get(attempt.claim.job_id)
