"""Outcomes of a flush as ended jobs, and their publication after the commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from windlass.domain.branches import NOT_JUDGED
from windlass.domain.ended import Effects, Ended
from windlass.domain.job import Payload
from windlass.domain.states import Move
from windlass.engine.attempt import Attempt
from windlass.engine.node_wakeups import NodeWakeups
from windlass.publisher import Publisher
from windlass.stores.ending import FollowUps, is_followed
from windlass.submission.stored_options import DEFAULTS

Written = Callable[[Sequence[Attempt]], None]
"""Called after each commit with the attempts whose outcome is stored: for tools that count or collect them."""


def ended_of(attempt: Attempt) -> Ended:
    """Return the ended job of an attempt whose transition is written."""
    claim, transition = attempt.claim, attempt.verdict
    return Ended(
        job_id=claim.job_id,
        target=claim.target,
        queue=claim.queue,
        priority=claim.priority,
        move=transition.move,
        correlation_id=attempt.correlation_id,
        outcome=transition.outcome,
        number=transition.number,
        attempts=transition.attempts,
        reason=transition.reason,
        failure=transition.failure,
        result=transition.result,
        times=transition.times,
        delay_us=transition.delay_us,
        timeout=attempt.timeout,
        lane=claim.lane,
        call=attempt.call,
        payload=_payload(attempt),
        judgements=attempt.judgements or NOT_JUDGED,
        cargo=attempt.cargo,
        fence=claim.fence,
    )


def _payload(attempt: Attempt) -> Payload | None:
    """Return the payload, without the options of a damaged row."""
    payload = attempt.payload
    return payload if attempt.damage is None or payload is None else payload._replace(options=None)


def followed(batch: Sequence[Attempt], follow_ups: FollowUps) -> dict[int, Ended]:
    """Return the ended jobs of a flush that have follow-ups, by their index.

    A job that succeeds, stored no options and called no service has none, and is not even checked.
    """
    found: dict[int, Ended] = {}
    for index, attempt in enumerate(batch):
        if attempt.options is not DEFAULTS or attempt.call is not None or attempt.verdict.move is not Move.SUCCEED:
            ended = ended_of(attempt)
            if is_followed(ended, follow_ups):
                found[index] = ended
    return found


class OutcomePublisher:
    """Publishes flushes of the completer."""

    def __init__(self, publisher: Publisher, wakeups: NodeWakeups, written: Written | None = None) -> None:
        self._publisher = publisher
        self._wakeups = wakeups
        self._written = written

    def publish(self, batch: Sequence[Attempt], effects: Effects) -> None:
        """Publish attempts whose outcome is committed."""
        if self._written is not None:
            self._written(batch)
        ended = [ended_of(attempt) for attempt in batch] if self._publisher.listens else []
        self._publisher.publish(ended, effects)
        back = [attempt for attempt in batch if not attempt.verdict.terminal]
        if len(back) < len(batch):
            self._wakeups.jobs_ended()
        freed = [attempt.claim for attempt in batch if attempt.claim.holds is not None and not attempt.lingers]
        if freed:
            self._wakeups.permits_freed(freed, announced=len(back) < len(batch))
        if back:
            self._wakeups.requeued([(attempt.claim, attempt.verdict) for attempt in back])

    def lost_track(self) -> None:
        """Handle a committed flush whose effects are unknown because its answer was lost."""
        self._wakeups.changed()
