"""Which attempts end as dead letters: a consequence of the completer."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from windlass.domain.states import JobStatus
from windlass.domain.transition import NO_FAILURE
from windlass.engine.attempt import Attempt
from windlass.failure.dead_letters import Death


def is_dead(attempt: Attempt) -> bool:
    """Whether the job fails for good."""
    return attempt.verdict.status is JobStatus.FAILED


def deaths_of(attempts: Sequence[Attempt]) -> list[Death]:
    """What is to be said of transitions that were won."""
    return [_death(attempt) for attempt in attempts]


def mark_alerts(attempts: Sequence[Attempt], raised: Collection[str]) -> None:
    """Remember who raised an alert, for the events after the commit. A plan that is run again says it again."""
    for attempt in attempts:
        attempt.raised_alert = attempt.claim.job_id in raised


def _death(attempt: Attempt) -> Death:
    claim, transition = attempt.claim, attempt.verdict
    return Death(
        claim.job_id,
        claim.target,
        claim.queue,
        transition.number,
        transition.attempts,
        transition.reason or "",
        transition.failure or NO_FAILURE,
    )
