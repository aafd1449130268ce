"""Conditions of an attempt: its own, if it is a guarded follower, and those of the branches behind it."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from windlass.context import current_context
from windlass.domain.branches import Judgement, OpenGuard, asked_after
from windlass.domain.clock import from_micros, monotonic
from windlass.domain.ended import Ended
from windlass.engine.attempt import Attempt, Deferred, Ending, NotChosen, NotKnownHere, Refused
from windlass.engine.completer import Completer
from windlass.engine.outcomes import ended_of
from windlass.errors import SerializationError, TargetNotAllowedError
from windlass.events.bus import EventBus
from windlass.events.types import WorkflowBranchTriggered
from windlass.flow.judge import Judge
from windlass.submission.stored_options import StoredFlow
from windlass.submission.target import Denied

PARENT_RUNS: Final = 1.0
"""Seconds after which a guarded follower is tried again if its parent was started over while it was claimed."""


class AttemptConditions:
    """Judges what concerns an attempt, and passes it on to be written."""

    def __init__(self, judge: Judge, completer: Completer, bus: EventBus) -> None:
        self._judge = judge
        self._completer = completer
        self._bus = bus
        self.finish_plain = completer.finish
        """Does what `finish` does, for attempts without branches: one call less on the hot path."""

    def missing(self, attempt: Attempt, flow: StoredFlow) -> Ending | None:
        """Return how an attempt ends whose predicates cannot all be called here; None: they can."""
        if attempt.guard is None and not flow.branches:
            return None
        own = () if attempt.guard is None else attempt.guard.guard.predicates
        needed = tuple(dict.fromkeys((*own, *flow.predicates)))
        try:
            missing = self._judge.unresolved(needed)
        except SerializationError as error:
            return Refused(error, "poison_payload")
        if missing is None:
            return None
        if isinstance(missing, Denied):
            return Refused(TargetNotAllowedError(missing.error), "target_not_allowed")
        return NotKnownHere(missing.error, tuple(dict.fromkeys((missing.target, *needed))))

    async def passed(self, attempt: Attempt, opened: OpenGuard) -> Ending | None:
        """Judge the guard of an attempt; return None if its body may be entered."""
        if attempt.claim.attempts:  # judged before its first attempt
            return None
        if opened.subject is None:
            return Deferred(PARENT_RUNS)
        judgement = await self._judge.judge_guard(attempt.claim.job_id, opened)
        if not judgement.holds:
            return NotChosen(judgement)
        if self._bus.wanted(WorkflowBranchTriggered):
            self._bus.publish([_triggered(attempt, opened)])
        return None

    def finish(self, attempt: Attempt) -> None:
        """Have the outcome of an attempt written, once its branches are judged."""
        flow = attempt.options.flow
        if flow is not None and flow.branches and asked_after(flow.branches, attempt.verdict.status):
            self._completer.finish_after(attempt, self._judged(attempt, flow))
        else:
            self._completer.finish(attempt)

    async def _judged(self, attempt: Attempt, flow: StoredFlow) -> None:
        current_context.set(attempt.context)
        judgements: dict[str, Judgement] = {}
        attempt.judgements = judgements  # what is known of them is used, even if this is cut off
        await self._judge.judge(ended_of(attempt), flow.branches, judgements)


def _triggered(attempt: Attempt, opened: OpenGuard) -> WorkflowBranchTriggered:
    claim, parent = attempt.claim, opened.subject
    target, queue = (parent.target, parent.queue) if isinstance(parent, Ended) else (claim.target, claim.queue)
    return WorkflowBranchTriggered(
        job_id=UUID(opened.parent_id),
        target=target,
        queue=queue,
        correlation_id=attempt.correlation_id,
        at=from_micros(attempt.store_time(monotonic())),
        parent_id=UUID(opened.parent_id),
        child_id=UUID(claim.job_id),
        description=opened.guard.description,
    )
