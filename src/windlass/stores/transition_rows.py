"""Transitions as rows of statements, and which of them held their fences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from windlass.domain.transition import NO_FAILURE, Transition


def row_of(transition: Transition) -> tuple[Any, ...]:
    """Return a transition as the table `transitions` of jobs.sql reads it: by position, for speed."""
    times, failure = transition.times, transition.failure or NO_FAILURE
    return (
        transition.job_id,
        transition.fence,
        transition.status.value,
        transition.outcome,
        transition.number,
        transition.attempts,
        *times,
        transition.result,
        failure.error or None,
        failure.error_class or None,
        failure.traceback,
        transition.reason,
    )


def success_row_of(transition: Transition) -> tuple[Any, ...]:
    """Return the end of a job that succeeded as the table `successes` of jobs.sql reads it."""
    return (transition.job_id, transition.fence, transition.number, *transition.times, transition.result)


def won(transitions: Sequence[Transition], held: Iterable[tuple[str, int]]) -> list[bool]:
    """Match by id and fence: a late transition may share its flush with one of the job's current holder."""
    winners = {(job, fence) for job, fence in held}
    return [(one.job_id, one.fence) in winners for one in transitions]
