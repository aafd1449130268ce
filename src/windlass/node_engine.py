"""The engine of a node, assembled: from the known claimable work to the commit of outcomes."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence

from windlass.domain.clock import MICROSECONDS
from windlass.domain.transition import Failure
from windlass.engine.cancellations import Cancellations
from windlass.engine.completer import Completer, Seams
from windlass.engine.conditions import AttemptConditions
from windlass.engine.guarded_strategy import Resilience
from windlass.engine.invoke import AttemptLimits, Invoker
from windlass.engine.known_targets import KnownTargets
from windlass.engine.known_work import KnownWork
from windlass.engine.lingering_bodies import LingeringBodies
from windlass.engine.node_wakeups import NodeWakeups
from windlass.engine.outcomes import OutcomePublisher
from windlass.engine.permit_releaser import PermitReleaser
from windlass.engine.poller import Poller, PollerOptions
from windlass.engine.progress_writer import Reports
from windlass.engine.runner import Runner
from windlass.engine.slots import Slots
from windlass.engine.verdict import Policies
from windlass.failure.guarded_sanitizer import GuardedSanitizer
from windlass.failure.sanitizer import class_name
from windlass.feature import ArgumentSource, BodyTools, Feature
from windlass.flow.guards import Guards
from windlass.flow.job_results import JobResults
from windlass.flow.judge import Judge, JudgeParts
from windlass.parts import Parts, processes_of
from windlass.publisher import Publisher
from windlass.resilience.breaker import StoreBreakers
from windlass.runtime.error_handling import ErrorHandling
from windlass.runtime.executors import LocalExecutors
from windlass.runtime.service import Bell
from windlass.runtime.unfinished_work import UnfinishedWork
from windlass.spi import ExecutorProvider
from windlass.stores.ending import FollowUps
from windlass.stores.node_identity import NodeIdentity
from windlass.submission.predicates import Predicates


class NodeEngine:
    """The parts of one engine on the current loop. Each knows only those created before it."""

    def __init__(
        self,
        parts: Parts,
        identity: NodeIdentity,
        follow_ups: FollowUps,
        concurrency: int,
        queues: Collection[str] | None,
        errors: ErrorHandling,
        features: Sequence[Feature] = (),
    ) -> None:
        database, settings = parts.database, parts.settings
        self.work = KnownWork(settings.circuits.refresh, int(settings.jobs.boost_interval * MICROSECONDS))
        self.unfinished, self.schedule_changes = UnfinishedWork(), Bell()
        notified = ((parts.work, parts.done), parts.coordinator, self.unfinished)
        self.wakeups = NodeWakeups(self.work, database, *notified)
        self.publisher = Publisher(parts.bus, parts.results, parts.clock, self.wakeups)
        self.permit_releaser = PermitReleaser(database, self.wakeups, errors)
        self.lingering = LingeringBodies(self.permit_releaser.release)
        self.reports = Reports(database, settings.jobs, parts.sanitizer, errors)
        self.completer = Completer(
            database,
            OutcomePublisher(self.publisher, self.wakeups, parts.written),
            errors,
            follow_ups=follow_ups,
            seams=Seams(self.reports.before, self.lingering.written),
            largest_flush=1 if settings.jobs.commit == "each" else parts.largest_flush,
        )
        executors = parts.executors or LocalExecutors(asyncio.get_running_loop(), processes_of(parts))
        self.invoker = _invoker(parts, executors, self.lingering)
        policies, predicates = _policies(parts), Predicates(parts.registry)
        judge = _judge(parts, executors, policies, predicates, concurrency)
        conditions = AttemptConditions(judge, self.completer, parts.bus)
        judges = (policies, parts.bus, _resilience(parts, self.work))
        tools = BodyTools(database, executors, policies.describe, self.wakeups.new_work)
        self.runner = Runner(identity, parts.registry, self.invoker, conditions, *judges, self.reports, tools)
        run_by = (self.runner, self.invoker, self.completer, self.lingering, self.work, errors)
        self.slots = Slots(database, *run_by, concurrency, _arguments(features), Guards(features))
        self.targets = KnownTargets(parts.registry, predicates, parts.sanitizer.sanitize)
        self.poller = _poller(parts, identity, self.slots, self.work, _options(parts, queues, self.targets), errors)
        self.cancellations = Cancellations(database, self.slots, identity, settings.node.heartbeat_interval, errors)

    def open(self) -> None:
        """Start everything but claiming."""
        for service in (self.completer, self.reports, self.slots, self.permit_releaser, self.cancellations):
            service.start()

    async def stop(self, timeout: float) -> None:
        """Stop everything, once the poller has stopped and the slots are drained."""
        await self.cancellations.stop()
        await self.slots.stop()
        await self.permit_releaser.stop()
        await self.completer.stop()
        await self.reports.close(timeout)
        await self.invoker.close()
        await self.wakeups.sent(timeout)


def _poller(
    parts: Parts,
    identity: NodeIdentity,
    slots: Slots,
    work: KnownWork,
    options: PollerOptions,
    errors: ErrorHandling,
) -> Poller:
    return Poller(identity, parts.database, slots, work, parts.polling, options, errors)


def _arguments(features: Sequence[Feature]) -> list[ArgumentSource]:
    return [feature.arguments for feature in features if feature.arguments is not None]


def _judge(
    parts: Parts, executors: ExecutorProvider, policies: Policies, predicates: Predicates, concurrency: int
) -> Judge:
    results = JobResults(parts.registry, parts.serializer)
    called = (predicates, results, parts.registry.instances, executors)
    return Judge(JudgeParts(*called, policies.describe, parts.settings.flows.predicate_timeout, concurrency))


def _invoker(parts: Parts, executors: ExecutorProvider, lingering: LingeringBodies) -> Invoker:
    limits = AttemptLimits(parts.settings.jobs.max_result_bytes, parts.settings.jobs.timeout)
    bodies = (parts.serializer, parts.registry.instances, executors, limits)
    return Invoker(*bodies, lingering.thread_ended, parts.middleware)


def _policies(parts: Parts) -> Policies:
    describe = _Description(parts.sanitizer).of
    return Policies(parts.retry_policy, describe, parts.sanitizer.sanitize_text, parts.settings.node.crash_budget)


class _Description:
    """Sanitised descriptions of errors."""

    def __init__(self, sanitizer: GuardedSanitizer) -> None:
        self._sanitizer = sanitizer

    def of(self, error: BaseException) -> Failure:
        """Sanitise one."""
        sanitizer = self._sanitizer
        return Failure(sanitizer.sanitize(error), class_name(error), sanitizer.traceback_tail(error))


def _resilience(parts: Parts, work: KnownWork) -> Resilience:
    given = parts.resilience
    return Resilience(given or StoreBreakers(work.shut_circuits, work.store_now), is_users=given is not None)


def _options(parts: Parts, queues: Collection[str] | None, targets: KnownTargets) -> PollerOptions:
    def serves(queue: str) -> bool:
        return queues is None or queue in queues

    return PollerOptions(parts.settings.poller.batch_size, serves, targets.knows)
