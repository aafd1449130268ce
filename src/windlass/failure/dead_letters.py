"""Dead letters and alerts: put into words, and stored by the transaction in which a job fails for good.

Either both are committed or neither is: there is no FAILED job without its dead letter, and none of a job that lives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from windlass.domain.dead_letter import PLATFORM, about
from windlass.domain.identity import host_of
from windlass.domain.keys import error_fingerprint
from windlass.domain.transition import Failure
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan
from windlass.stores.plans import dead_letters, reads
from windlass.stores.plans.dead_letters import Envelope, Letter

LONGEST_NAME: Final = 500
"""Characters of a target or an error's class that a dead letter is found by: an index takes no more."""


class Death(NamedTuple):
    """A job that fails for good in this transaction."""

    job_id: str
    target: str
    queue: str
    number: int
    """Of its last attempt."""
    attempts: int
    """Attempts that counted."""
    reason: str
    failure: Failure
    host: str | None = None
    """Where it died, if not here."""


class DeadLetters:
    """Turns deaths into dead letters and alerts."""

    def __init__(self, transport: str, host: str, alert_window_us: int) -> None:
        self._transport = transport
        self._host = host
        self._window_us = alert_window_us

    def store(self, dialect: Dialect, deaths: Sequence[Death]) -> Plan[frozenset[str]]:
        """Store the dead letters, in the transaction of the outcomes; answers the jobs that raised an alert."""
        return (yield from dead_letters.bury(dialect, [self._letter(death) for death in deaths], self._window_us))

    def of_given_up(self, dialect: Dialect, ids: Sequence[str]) -> Plan[None]:
        """Store those of jobs that failed outside of any attempt, in the transaction in which they did."""
        deaths = [self._death(job) for job in (yield from reads.failed(dialect, ids))]
        if deaths:
            yield from self.store(dialect, deaths)

    def _death(self, job: reads.FailedJob) -> Death:
        host = None if job.node is None else host_of(job.node)
        failure = Failure(job.error, job.error_class)
        return Death(job.job_id, job.target, job.queue, job.attempts + 1, job.attempts, job.reason, failure, host)

    def _letter(self, death: Death) -> Letter:
        failure = death.failure
        envelope = Envelope(
            transition_key=f"{death.job_id}:0:{death.number}",
            transport=self._transport,
            platform=PLATFORM,
            host=death.host or self._host,
            error_message=failure.error,
            retryable=about(death.reason).retryable,
            retries_observed=max(death.attempts - 1, 0),
            traceback=failure.traceback,
        )
        return Letter(
            death.job_id,
            error_fingerprint(death.target, failure.error_class, failure.error),
            death.target[:LONGEST_NAME],
            death.queue,
            failure.error_class[:LONGEST_NAME],
            death.reason,
            dead_letters.packed(envelope),
            failure.error,
        )
