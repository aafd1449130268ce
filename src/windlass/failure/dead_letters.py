"""Dead letters and alerts, stored by the transaction in which a job fails for good.

Either both are committed or neither is: there is no FAILED job without its dead letter, and no dead letter of a live
job.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from windlass.domain.dead_letter import PLATFORM, about
from windlass.domain.ended import Effects, Ended
from windlass.domain.identity import host_of
from windlass.domain.keys import error_fingerprint
from windlass.domain.states import Move
from windlass.domain.transition import NO_FAILURE
from windlass.feature import Feature
from windlass.purge_duty import purge_duties
from windlass.settings import DeadLettersSettings
from windlass.stores.dialect import Dialect
from windlass.stores.ending import FollowUp
from windlass.stores.plan import Plan
from windlass.stores.plans import dead_letters
from windlass.stores.plans.dead_letters import Envelope, Letter

MICROSECONDS: Final = 1_000_000
LONGEST_NAME: Final = 500
"""Length in characters to which a target or error class is indexed: an index accepts no more."""


def feature(transport: str, host: str, settings: DeadLettersSettings) -> Feature:
    """Return the dead letters of an application and its nodes; `transport` is the dialect, `host` this machine."""
    window_us = int(settings.alert_window * MICROSECONDS)
    letters = DeadLetterFollowUp(transport, host, window_us)
    follow_up = FollowUp(frozenset({Move.FAIL, Move.GIVE_UP}), _always, letters.follow)
    purge = purge_duties("dead letters", dead_letters.purge, settings.retention, settings.purge_cron)
    return Feature("dead letters", (follow_up,), purge)


def _always(ended: Ended) -> bool:
    del ended
    return True


class DeadLetterFollowUp:
    """The follow-up that turns jobs that fail for good into dead letters and alerts."""

    def __init__(self, transport: str, host: str, alert_window_us: int) -> None:
        self._transport = transport
        self._host = host
        self._window_us = alert_window_us

    def follow(self, dialect: Dialect, ended: Sequence[Ended]) -> Plan[Effects]:
        """Store the dead letters of failed jobs, in the transaction in which they fail."""
        letters = [self._letter(job) for job in ended]
        return Effects(alerts=(yield from dead_letters.store_letters(dialect, letters, self._window_us)))

    def _letter(self, job: Ended) -> Letter:
        failure, reason = job.failure or NO_FAILURE, job.reason or ""
        envelope = Envelope(
            transition_key=f"{job.job_id}:0:{job.number}",
            transport=self._transport,
            platform=PLATFORM,
            host=self._host if job.node is None else host_of(job.node),
            error_message=failure.error,
            retryable=about(reason).retryable,
            retries_observed=max(job.attempts - 1, 0),
            traceback=failure.traceback,
        )
        return Letter(
            job.job_id,
            error_fingerprint(job.target, failure.error_class, failure.error),
            job.target[:LONGEST_NAME],
            job.queue,
            failure.error_class[:LONGEST_NAME],
            reason,
            dead_letters.packed(envelope),
            failure.error,
        )
