"""A worker: the services of one node, started in order and drained in order."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Sequence

from windlass import loggers
from windlass._version import __version__
from windlass.domain.clock import SystemClock
from windlass.domain.identity import new_node_id
from windlass.domain.transition import Failure
from windlass.engine.attempt import Attempt
from windlass.engine.callbacks import callbacks_due, has_callback
from windlass.engine.cancellations import Cancellations
from windlass.engine.completer import Completer, Consequence
from windlass.engine.dead_letters import deaths_of, is_dead, mark_alerts
from windlass.engine.guarded_strategy import Resilience
from windlass.engine.invoke import Invoker, Limits
from windlass.engine.known_targets import KnownTargets
from windlass.engine.known_work import KnownWork
from windlass.engine.loop_owner import watch_loop
from windlass.engine.permit_releaser import Leaving
from windlass.engine.poller import Poller, PollerOptions
from windlass.engine.progress_writer import Reports
from windlass.engine.retry_times import RetryTimes
from windlass.engine.runner import Runner
from windlass.engine.slots import Slots
from windlass.engine.verdict import Policies
from windlass.engine.wakeup import WakeupBridge
from windlass.failure.callbacks import Callbacks
from windlass.failure.dead_letters import DeadLetters
from windlass.failure.sanitizer import class_name
from windlass.maintenance.duties import Duties, Purge
from windlass.maintenance.expiry import Expiry
from windlass.maintenance.heartbeat import Heartbeat, Load
from windlass.maintenance.recovery import Recovery
from windlass.node_exit import TIMEOUT, Departure
from windlass.parts import Parts, processes_of
from windlass.publisher import Telling
from windlass.resilience.breaker import StoreBreakers
from windlass.runtime import logcontext
from windlass.runtime.error_handling import ErrorHandling
from windlass.runtime.executors import LocalExecutors
from windlass.runtime.loop_watch import LoopWatch
from windlass.runtime.service_errors import ServiceErrors
from windlass.spi import ExecutorProvider
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan
from windlass.stores.plans import cluster, dead_letters

logger = loggers.logger("windlass.worker")

MICROSECONDS = 1_000_000
EMPTY_CHECK = 0.02
"""Seconds between two looks whether a node has run all that is due."""


class Node:
    """One running node on the current loop. Built by `Worker`, which says where the loop is."""

    loop_watch: LoopWatch | None = None

    def __init__(self, parts: Parts, concurrency: int, queues: Sequence[str] | None) -> None:
        self._parts = parts
        self._queues = frozenset(queues) if queues is not None else None
        self._loop = asyncio.get_running_loop()
        settings = parts.settings
        self.asked_to_drain = asyncio.Event()
        """Set once somebody wants this node to leave."""
        self.work = KnownWork(settings.circuits.refresh)
        self.telling = Telling(parts, self.work, self._loop)
        row = self._new_row()
        self._executors: ExecutorProvider = parts.executors or LocalExecutors(self._loop, processes_of(parts))
        self._service_errors = ServiceErrors()
        errors = ErrorHandling(describe=parts.sanitizer.sanitize, service_errors=self._service_errors)
        self.completer = Completer(parts.database, self.telling.told, errors, one_by_one=settings.jobs.commit == "each")
        self._callbacks = Callbacks(parts.registry, parts.serializer, parts.database.known_queues)
        self.completer.add_consequence(Consequence(has_callback, self._follow))
        window_us = int(settings.dead_letters.alert_window * MICROSECONDS)
        self._dead_letters = DeadLetters(parts.database.dialect.name, row.host, window_us)
        self.completer.add_consequence(Consequence(is_dead, self._bury))
        retry_times = RetryTimes(parts.bus)
        self.completer.add_consequence(Consequence(retry_times.concerns, retry_times.read))
        limits = Limits(settings.jobs.max_result_bytes, settings.jobs.timeout)
        self._invoker = invoker = Invoker(
            parts.serializer, parts.registry.instances, self._executors, limits, parts.middleware
        )
        budget = settings.node.crash_budget
        policies = Policies(parts.retry_policy, self._describe, parts.sanitizer.sanitize_text, budget)
        self.runner = Runner(row.id, parts.registry, invoker, self.completer, policies, parts.bus)
        self.reports = Reports(parts.database, settings.jobs, parts.sanitizer, errors)
        self.runner.reporter, self.completer.before = self.reports, self.reports.before
        self.slots = Slots(parts.database, self.runner, invoker, self.completer, self.work, errors, concurrency)
        boost_us = int(settings.jobs.boost_interval * MICROSECONDS)
        self._targets = KnownTargets(parts.registry, parts.sanitizer.sanitize)
        options = PollerOptions(settings.poller.batch_size, boost_us, self._serves, self._targets.knows)
        self.poller = Poller(row.id, parts.database, self.slots, self.work, parts.polling, options, errors)
        self._mind_gates(errors)
        self._join_the_cluster(row, errors)
        self._listen_to_clients(errors)

    def _mind_gates(self, errors: ErrorHandling) -> None:
        """What attempts hold of gates comes back, and circuits learn how calls ended."""
        given = self._parts.resilience
        breakers = StoreBreakers(self.work.shut_circuits, self.work.store_now)
        self.runner.resilience = Resilience(given or breakers, is_users=given is not None)
        self.leaving = Leaving(self._parts.database, errors)
        self.leaving.when_freed = self.telling.places_freed
        lingering = self.slots.lingering
        lingering.release = self.leaving.leave
        self.completer.when_refused = self.telling.when_kept = lingering.written
        self._invoker.thread_ended = lingering.thread_ended
        circuits = self.telling.circuits
        self.completer.add_consequence(Consequence(circuits.concerns, circuits.record))

    def _join_the_cluster(self, row: cluster.NodeRow, errors: ErrorHandling) -> None:
        """The services that deal with other nodes."""
        parts, settings = self._parts, self._parts.settings
        # On connections of its own: a beat must not wait for what bodies on threads ask the store.
        pulse = parts.database.apart()
        self.heartbeat = Heartbeat(
            pulse, row, settings.node, self._load, self._begin_again, self._asked_to_leave, errors
        )
        self.departure = Departure(parts, self.heartbeat, pulse, self.slots.lingering, self.completer)
        self.recovery = Recovery(
            parts.database,
            settings.node,
            parts.bus,
            parts.clock,
            self.telling.work_came_back,
            self.heartbeat,
            self._given_up,
            self._targets.take,
            errors,
        )
        old = settings.dead_letters
        self.duties = Duties(
            parts.database,
            settings,
            lambda: self.heartbeat.node.id,
            self.recovery,
            Expiry(parts.bus, parts.clock),
            errors,
            purges=[Purge("dead letters", dead_letters.purge, old.retention, old.purge_cron)],
            ids_tell_time=isinstance(parts.clock, SystemClock),
        )

    def _listen_to_clients(self, errors: ErrorHandling) -> None:
        """The services that hear of new work and of cancels."""
        parts, settings = self._parts, self._parts.settings
        self.cancellations = Cancellations(
            parts.database, self.slots, lambda: self.poller.node, settings.node.heartbeat_interval, errors
        )
        self.wakeups = WakeupBridge(
            parts.database,
            self.work,
            self._loop,
            parts.coordinator,
            (parts.work.sender, parts.done.sender),
            self.cancellations,
        )
        self.wakeups.when_lost = self._store_lost

    @property
    def id(self) -> str:
        """The node's present id."""
        return self.heartbeat.node.id

    # ------------------------------------------------------------------ life

    async def start(self) -> None:
        """Everything a node does."""
        await self.open()
        self.duties.start()
        self.poller.start()
        if threshold := self._parts.settings.node.loop_block_warning:
            self.loop_watch = watch_loop(threshold, self.slots)
            self.loop_watch.start()

    async def open(self) -> None:
        """All but claiming. Register first, so that nothing is ever claimed in the name of a node nobody knows."""
        logcontext.install()
        try:
            await asyncio.to_thread(self.heartbeat.register)
        except BaseException:
            await self._invoker.close()
            self.abandon()
            raise
        try:
            self.heartbeat.start()
            self.completer.start()
            self.reports.start()
            self.slots.start()
            self.leaving.start()
            self.recovery.start()
            self.cancellations.start()
            await asyncio.to_thread(self.wakeups.open)
        except BaseException:
            await self.drain(0)  # half a node must not look alive
            raise

    async def emptied(self) -> None:
        """Wait until nothing runs here and nothing is due that this node could claim."""
        while True:
            while self.slots.attempts() or self.completer.unwritten:  # noqa: ASYNC110 - told of neither
                await asyncio.sleep(EMPTY_CHECK)
            await self.poller.stop()  # so that no claim is under way
            if not self.slots.attempts() and not await self.poller.anything_due():
                return
            self.poller.start()
            await asyncio.sleep(EMPTY_CHECK)

    async def drain(self, timeout: float | None = None) -> bool:
        """Stop claiming, hand back, finish, leave. True when all bodies finished in time and all is written."""
        limit = self._parts.settings.node.drain_timeout if timeout is None else timeout
        try:
            self.wakeups.close()
            await asyncio.gather(self.poller.stop(), self.recovery.stop(), self.duties.stop())
            clean = await self.slots.drain(limit)
            clean = await self.departure.flushed(self._service_errors) and clean
            await self.cancellations.stop()
            await self.slots.stop()
            await self.leaving.stop()
            await self.completer.stop()
            await self.reports.close(TIMEOUT)
            await self._invoker.close()
            await self.telling.sent(TIMEOUT)
            await self._parts.bus.drain(5.0)
        finally:
            if self.loop_watch is not None:
                await self.loop_watch.astop()
            left = await self.departure.leave()
            logcontext.uninstall()
        return clean and left

    def abandon(self) -> None:
        """Its loop has ended: stop beating, so that its lease runs out and others take over what it ran."""
        if self.loop_watch is not None:
            self.loop_watch.stop()
        self.departure.abandon()
        logcontext.uninstall()

    # ------------------------------------------------------------------ what the services ask

    def _serves(self, queue: str) -> bool:
        return self._queues is None or queue in self._queues

    def _store_lost(self, reason: str) -> None:
        """Leave without waiting for what runs: there is nowhere to write what it ends with."""
        if self.departure.loss is None:
            self.departure.store_lost(reason)
            self.slots.force()
            self.asked_to_drain.set()

    def _asked_to_leave(self) -> None:
        """Called on the heartbeat's thread."""
        self._loop.call_soon_threadsafe(self.asked_to_drain.set)

    def _load(self) -> Load:
        return Load(self.slots.running, self.slots.utilisation, self._service_errors.text())

    def _new_row(self) -> cluster.NodeRow:
        host, pid = socket.gethostname(), os.getpid()
        queues = ",".join(sorted(self._queues)) if self._queues is not None else None
        return cluster.NodeRow(new_node_id(host, pid), host, pid, __version__, queues)

    def _begin_again(self) -> cluster.NodeRow:
        """After a lost lease: a new name for everything claimed from now on, and an end to what runs under the old one.

        Called on the heartbeat's thread. Its jobs are others' by now, so nobody would hear what they return.
        """
        row = self._new_row()
        self.runner.node = row.id
        self.poller.node = row.id
        self._loop.call_soon_threadsafe(self.cancellations.hinted, ())
        return row

    def _describe(self, error: BaseException) -> Failure:
        """An error as it may be stored."""
        sanitizer = self._parts.sanitizer
        return Failure(sanitizer.sanitize(error), class_name(error), sanitizer.traceback_tail(error))

    def _follow(self, dialect: Dialect, attempts: Sequence[Attempt]) -> Plan[None]:
        """In the transaction of outcomes: the callbacks they set off."""
        return self._callbacks.store(dialect, callbacks_due(attempts))

    def _bury(self, dialect: Dialect, attempts: Sequence[Attempt]) -> Plan[None]:
        """In the transaction of outcomes: the dead letters and alerts of those that fail for good."""
        raised = yield from self._dead_letters.store(dialect, deaths_of(attempts))
        mark_alerts(attempts, raised)

    def _given_up(self, dialect: Dialect, ids: Sequence[str]) -> Plan[None]:
        """The same, and callbacks, for jobs that fail outside of any attempt."""
        yield from self._callbacks.of_given_up(dialect, ids)
        yield from self._dead_letters.of_given_up(dialect, ids)
