"""One attempt, step by step. The order of the code is the order of a job's run.

The twelve steps of J4: bind log context, load, bind JobContext, cancelled?, circuit gate, resource permit, policy
check, resolve target, call, handle outcome, release permit, clear context. The claim has done what steps 2 to 6
need: it let the job through its gates (5, 6), so what is left here is to check whether a circuit has opened since, and
whether the permit is there. Permits are released (11) by the transaction that writes the outcome; 12 is the end of the
attempt's task, whose context ends with it.
"""

from __future__ import annotations

import asyncio
import logging
from uuid import UUID

from windlass import loggers
from windlass.context import JobContext, Reporter, current_context
from windlass.domain.branches import OpenGuard
from windlass.domain.circuit import ServiceCall, class_names
from windlass.domain.clock import from_micros, monotonic
from windlass.domain.control_characters import one_line, visible
from windlass.domain.execution import is_part
from windlass.domain.job import Payload
from windlass.domain.lanes import read_lane
from windlass.domain.transition import Failure, Transition
from windlass.engine.attempt import (
    RELEASED,
    Attempt,
    Deferred,
    Directed,
    Ending,
    Expired,
    NotChosen,
    NotKnownHere,
    NotSignaled,
    Raised,
    Refused,
    Returned,
    Stop,
)
from windlass.engine.conditions import AttemptConditions
from windlass.engine.guarded_strategy import Resilience
from windlass.engine.invoke import Invoker
from windlass.engine.verdict import Policies, failed_for_good, verdict
from windlass.errors import SerializationError, TargetNotAllowedError, UnknownResourceError
from windlass.events.bus import EventBus
from windlass.events.types import JobStarted
from windlass.resilience.circuits import circuit_of, is_trial
from windlass.runtime.failpoints import are_armed, reached
from windlass.stores.node_identity import NodeIdentity
from windlass.stores.plans.permits import held_gates
from windlass.submission.registry import Registry
from windlass.submission.target import Denied, Known, Unknown

logger = loggers.logger("windlass.runner")


class Runner:
    """Runs attempts, each in its own task."""

    def __init__(
        self,
        identity: NodeIdentity,
        registry: Registry,
        invoker: Invoker,
        conditions: AttemptConditions,
        policies: Policies,
        bus: EventBus,
        resilience: Resilience | None = None,
        reporter: Reporter | None = None,
        tools: object = None,
    ) -> None:
        self._identity = identity
        self._registry = registry
        self._invoker = invoker
        self._conditions = conditions
        self._finish_plain = conditions.finish_plain
        self._policies = policies
        self._bus = bus
        self._resilience = resilience
        self._reporter = reporter
        self._tools = tools
        self._unknown_logged: set[str] = set()

    async def run(self, attempt: Attempt, payload: Payload, known: Known | None = None) -> None:
        """Run the steps, top to bottom.

        `known` is given for a body that was resolved when it was prepared for its turn.
        """
        node, received = self._identity.id, attempt.received
        attempt.context = context = JobContext(attempt.claim, payload, node, self._reporter, received, self._tools)
        current_context.set(context)
        try:
            found = known if known is not None and attempt.stop is None else self._before_the_body(attempt)
            if attempt.guard is not None and isinstance(found, Known | NotSignaled):
                stopped = await self._passed_guard(attempt, attempt.guard)
                found = found if stopped is None else stopped
            if isinstance(found, Known):
                attempt.started = monotonic()
                if self._bus.wanted(JobStarted) and not is_part(attempt.claim.target):
                    self._bus.publish([_started(attempt, attempt.started, node)])
                reached("run.before_body")
                if attempt.claim.lane is None:
                    found = await self._invoker.invoke(attempt, payload, found)
                else:
                    found = await self._called(attempt, payload, found)
                reached("run.after_body")
        finally:
            context.over = True
        self.settle(attempt, found)

    async def _passed_guard(self, attempt: Attempt, guard: OpenGuard) -> Ending | None:
        try:
            return await self._conditions.passed(attempt, guard)
        except asyncio.CancelledError as error:  # stopped meanwhile
            return self._invoker.raised(attempt, error)

    def make_ready(self, attempt: Attempt, payload: Payload, until: float) -> Known | None:
        """Give a body its turn for a thread before it has a slot; return None if that must wait for the slot.

        The start is published when it happens, and gates are checked when the slot is there.
        """
        claim = attempt.claim
        if claim.lane is not None or claim.expires is not None or self._bus.wanted(JobStarted) or are_armed():
            return None
        if attempt.guard is not None:
            return None
        attempt.read_payload(payload)
        try:
            found = self._before_the_body(attempt)
            if not isinstance(found, Known):
                return None
            attempt.turn = self._invoker.turn_for(attempt, found, until)
        except Exception:  # noqa: BLE001 - it occurs again when the attempt has its slot, and fails it there
            return None
        return None if attempt.turn is None else found

    async def _called(self, attempt: Attempt, payload: Payload, known: Known) -> Ending:
        """Call the body through the resilience strategy, if that is the user's and the job has a circuit."""
        circuit, resilience = circuit_of(attempt.claim), self._resilience
        if circuit is None or resilience is None or not resilience.is_users:
            return await self._invoker.invoke(attempt, payload, known)
        return await resilience.call(
            circuit,
            lambda: self._invoker.invoke(attempt, payload, known),
            lambda error: self._invoker.raised(attempt, error),
        )

    def settle(self, attempt: Attempt, ending: Ending, *, goes_on: bool = False) -> None:
        """Make the verdict, once, perhaps while the task still runs. A canceled attempt gets none."""
        if attempt.transition is not None or attempt.stop is Stop.CANCEL:
            return
        try:
            if attempt.claim.lane is not None and self._resilience is not None and not self._resilience.is_users:
                attempt.call = _call_of(attempt, ending)
            transition = verdict(attempt, ending, self._policies)
        except Exception as error:  # noqa: BLE001 - unusual values of the body must not leave the job RUNNING forever
            transition = failed_for_good(attempt, error, self._policies)
        if goes_on or attempt.body_goes_on:
            transition = transition._replace(lingers=True)
        attempt.transition = transition
        if attempt.options.flow is None:
            self._finish_plain(attempt)
        else:
            self._conditions.finish(attempt)
        if transition.failure is None and type(ending) is Returned:  # as usual: there is nothing to log
            return
        if isinstance(ending, NotChosen):
            logger.info("job %s (%s) is not chosen; canceling it", attempt.claim.job_id, attempt.claim.target)
        elif transition.failure is not None:
            _log_failure(attempt, transition.failure, transition)
        elif isinstance(ending, Expired):
            claim = attempt.claim
            logger.info("job %s (%s) expired before it could start; canceling it", claim.job_id, claim.target)
        elif isinstance(ending, NotKnownHere):
            unknown = "|".join((attempt.claim.target, *ending.predicates))
            self._log_unknown(unknown, self._policies.redact(ending.why))

    def _log_unknown(self, target: str, why: str) -> None:
        """Log once per target: a queue may be full of jobs of one."""
        if target not in self._unknown_logged:
            self._unknown_logged.add(target)
            logger.warning("%s; its jobs wait for other nodes", why)

    def _before_the_body(self, attempt: Attempt) -> Known | Ending:
        """Return the target if the body may start: not stopped, no gate shut, target allowed and known."""
        if attempt.stop is not None and attempt.stop is not Stop.TIMEOUT:
            return RELEASED
        broken = attempt.damage or attempt.refusal
        if broken is not None:
            return Refused(broken, "poison_payload")
        claim, options = attempt.claim, attempt.options
        if claim.expires is not None and attempt.expired:
            return Expired()
        late = None if options.wait is None else attempt.not_signaled
        if late is not None and attempt.guard is None:
            return late
        if claim.lane is not None:
            held = self._held_at_a_gate(attempt, claim.lane)
            if held is not None:
                return held
        try:
            resolution = self._registry.resolve(claim.target)
        except SerializationError as error:
            return Refused(error, "poison_payload")
        match resolution:
            case Known():
                missing = None if options.flow is None else self._conditions.missing(attempt, options.flow)
                # late: its guard decides first, for what is not chosen cannot fail
                return missing or late or resolution
            case Denied():
                return Refused(TargetNotAllowedError(resolution.error), "target_not_allowed")
            case Unknown():
                return NotKnownHere(resolution.error)

    def _held_at_a_gate(self, attempt: Attempt, lane: str) -> Ending | None:
        wanted = read_lane(lane)
        if self._resilience is not None and wanted.circuit is not None and not is_trial(attempt.claim, wanted.circuit):
            delay = self._resilience.delay(wanted.circuit)
            if delay is not None:
                return Deferred(delay)
        permit = wanted.resource_gate
        if permit is not None and permit not in held_gates(attempt.claim.holds):
            return Refused(UnknownResourceError(wanted.resource or ""), "non_retryable")
        return None


def _call_of(attempt: Attempt, ending: Ending) -> ServiceCall | None:
    """Return how the call to its service ended; None if there was none, or it says nothing about the service."""
    circuit = circuit_of(attempt.claim)
    if circuit is None:
        return None
    match ending:
        case Returned():
            return ServiceCall(trial=is_trial(attempt.claim, circuit))
        case Raised(error):
            return ServiceCall(class_names(type(error)), is_trial(attempt.claim, circuit))
        case Directed(end) if end.called is True:
            return ServiceCall(trial=is_trial(attempt.claim, circuit))
        case Directed(end) if isinstance(end.called, BaseException):
            return ServiceCall(class_names(type(end.called)), is_trial(attempt.claim, circuit))
        case _:
            return None


def _started(attempt: Attempt, started: float, node: str) -> JobStarted:
    claim = attempt.claim
    return JobStarted(
        job_id=UUID(claim.job_id),
        target=claim.target,
        queue=claim.queue,
        correlation_id=attempt.correlation_id,
        at=from_micros(attempt.store_time(started)),
        attempt=attempt.number,
        node=node,
    )


def _log_failure(attempt: Attempt, failure: Failure, transition: Transition) -> None:
    claim = attempt.claim
    if transition.terminal:
        level, ending = logging.ERROR, "failed for good"
    else:
        level = logging.WARNING
        ending = "was lost and will run again" if transition.crashes else "failed and will be retried"
    note = f" ({failure.note})" if failure.note else ""
    facts = (claim.job_id, claim.target, attempt.number, ending, one_line(failure.error), one_line(note))
    _log_with_traceback(level, "job %s (%s) attempt %d %s: %s%s", facts, failure.traceback)


def _log_with_traceback(level: int, message: str, args: tuple[object, ...], printed: str | None) -> None:
    """Log with a traceback that is already sanitised; `exc_info` would print the error itself with its secrets."""
    if not logger.isEnabledFor(level):
        return
    record = logger.makeRecord(logger.name, level, __file__, 0, message, args, None, _log_failure.__name__)
    record.exc_text = None if printed is None else visible(printed)
    logger.handle(record)
