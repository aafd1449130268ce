"""One attempt, step by step. This file reads like the documentation of a job's run.

The twelve steps of J4: bind log context, load, bind JobContext, cancelled?, circuit gate, resource permit, policy
check, resolve target, call, handle outcome, release permit, clear context. The claim has brought what steps 2 to 6
read. Gates (5, 6 and 11) are decided in the claim and have nothing to do here yet; 12 is the end of the attempt's own
task, whose context goes with it.
"""

from __future__ import annotations

import logging

from windlass.context import JobContext, current_context
from windlass.domain.clock import from_micros
from windlass.domain.transition import Failure
from windlass.engine.attempt import Attempt, Ending, Handed, NotKnownHere, Refused, Stop
from windlass.engine.completer import Completer, Finished
from windlass.engine.invoke import Invoker
from windlass.engine.verdict import Policies, failed_for_good, verdict
from windlass.errors import SerializationError, TargetNotAllowedError
from windlass.events.bus import EventBus
from windlass.events.types import JobStarted
from windlass.runtime import logcontext
from windlass.submission.registry import Registry
from windlass.submission.target import Denied, Known, Unknown

logger = logging.getLogger("windlass.runner")


class Runner:
    """Runs attempts; each on a task of its own."""

    def __init__(
        self, node: str, registry: Registry, invoker: Invoker, completer: Completer, policies: Policies, bus: EventBus
    ) -> None:
        self.node = node
        self._registry = registry
        self._invoker = invoker
        self._completer = completer
        self._policies = policies
        self._bus = bus
        self._unknown_said: set[str] = set()

    async def run(self, attempt: Attempt) -> None:
        """The steps, top to bottom."""
        logcontext.bind(attempt.claim.job_id, self.node, attempt.number)
        attempt.context = JobContext(attempt.claim, attempt.payload, self.node)
        current_context.set(attempt.context)
        ending = self._stopped_before_it_began(attempt) or _damaged(attempt) or await self._resolved(attempt)
        self.settle(attempt, ending)

    def settle(self, attempt: Attempt, ending: Ending) -> None:
        """Pass the verdict, once."""
        if attempt.settled:
            return
        try:
            transition, note = verdict(attempt, ending, self._policies)
        except Exception as error:  # noqa: BLE001 - odd values of the body's own must not leave the job RUNNING for ever
            transition, note = failed_for_good(attempt, error, self._policies), "no verdict could be passed on it"
        attempt.settled = True
        claim = attempt.claim
        if transition.failure is not None:
            _log_failure(attempt, transition.failure, transition.outcome, note)
        elif isinstance(ending, NotKnownHere):
            self._log_unknown(claim.target, self._policies.redact(ending.why))
        self._completer.finish(Finished(transition, claim.queue, claim.target, claim.priority, attempt))

    def _log_unknown(self, target: str, why: str) -> None:
        """Once each: a queue may be full of jobs of one such target."""
        if target not in self._unknown_said:
            self._unknown_said.add(target)
            logger.warning("%s; its jobs are left to other nodes", why)

    def _stopped_before_it_began(self, attempt: Attempt) -> Ending | None:
        return Handed() if attempt.stop in (Stop.DRAIN, Stop.CANCEL) else None

    async def _resolved(self, attempt: Attempt) -> Ending:
        """Policy check and resolution: the body is entered only if the target is allowed and known here."""
        try:
            resolution = self._registry.resolve(attempt.claim.target)
        except SerializationError as error:
            return Refused(error, "poison_payload")
        match resolution:
            case Known():
                return await self._call(attempt, resolution)
            case Denied():
                return Refused(TargetNotAllowedError(resolution.error), "target_not_allowed")
            case Unknown():
                return NotKnownHere(resolution.error)

    async def _call(self, attempt: Attempt, known: Known) -> Ending:
        attempt.started_at = attempt.now()
        if self._bus.wanted(JobStarted):
            self._bus.publish([_started(attempt, self.node)])
        return await self._invoker.invoke(attempt, known)


def _damaged(attempt: Attempt) -> Ending | None:
    return None if attempt.damage is None else Refused(attempt.damage, "poison_payload")


def _started(attempt: Attempt, node: str) -> JobStarted:
    claim = attempt.claim
    return JobStarted(
        job_id=claim.job_id,
        target=claim.target,
        queue=claim.queue,
        correlation_id=attempt.payload.correlation_id,
        at=from_micros(attempt.started_at or claim.picked_at),
        attempt=attempt.number,
        node=node,
    )


def _log_failure(attempt: Attempt, failure: Failure, outcome: str, note: str) -> None:
    claim = attempt.claim
    level = logging.WARNING if outcome == "retried" else logging.ERROR
    logger.log(
        level,
        "job %s (%s) attempt %d %s: %s%s",
        claim.job_id,
        claim.target,
        attempt.number,
        "failed and will be retried" if outcome == "retried" else "failed for good",
        failure.error,
        f" ({note})" if note else "",
    )
