"""Publishes what a commit has changed: events, outcomes that handles wait for, and wakeups.

Every commit that ends, revives or moves jobs is published here, whether by the completer, the verbs of an application,
recovery or the sweeper.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final, Protocol

from windlass.domain.batch import BATCH_TARGET, BatchReport
from windlass.domain.circuit import CircuitChange
from windlass.domain.ended import NO_EFFECTS, Effects, Ended, Unfinished
from windlass.domain.job import Outcome
from windlass.domain.states import TERMINAL, JobStatus, Move
from windlass.events.batch_events import batch_events
from windlass.events.bus import EventBus
from windlass.events.job_events import (
    JOB_EVENTS,
    circuit_events,
    job_events,
    move_events,
    signal_events,
    skipped_events,
)
from windlass.events.types import Event, JobPaused, JobResumed, JobRetrying, JobSignaled
from windlass.feature import Feature
from windlass.spi import Clock
from windlass.stores.dialect import Dialect
from windlass.stores.ending import FollowUp
from windlass.stores.plan import Plan
from windlass.stores.plans import jobs
from windlass.stores.plans.moves import Steered
from windlass.stores.plans.signal_waits import SignaledJob


class Awaited(Protocol):
    """The handles of this process that wait for outcomes."""

    @property
    def awaits(self) -> bool:
        """Whether any of them waits."""
        ...

    def deliver(self, outcomes: Iterable[Outcome]) -> None:
        """Deliver outcomes to the handles that wait for them."""


class WakeupTarget(Protocol):
    """What to wake for changes, in addition to what the transaction itself notified."""

    def new_work(self, work: Collection[tuple[str, int]]) -> None:
        """Wake for new jobs at these levels of queues."""

    def stop(self, ids: Collection[str]) -> None:
        """Stop jobs that were canceled while they ran."""

    def changed(self) -> None:
        """Wake because claimable work has changed."""

    def circuits_changed(self, changes: Sequence[CircuitChange]) -> None:
        """Wake for circuits that opened, closed or were reset."""

    def unfinished(self, work: Unfinished) -> None:
        """Have the rest of a commit's work carried out."""


class Publisher:
    """Publishes the effects of commits."""

    def __init__(self, bus: EventBus, awaited: Awaited, clock: Clock, wakeups: WakeupTarget) -> None:
        self._bus = bus
        self._awaited = awaited
        self._clock = clock
        self.wakeups = wakeups

    @property
    def listens(self) -> bool:
        """Whether anything in this process subscribes to single jobs."""
        return self._awaited.awaits or any(map(self._bus.wanted, JOB_EVENTS))

    def publish(self, ended: Sequence[Ended], effects: Effects = NO_EFFECTS) -> int:
        """Publish jobs that ended or were revived, and their effects; return how many jobs."""
        if ended or effects.canceled:
            self._publish_jobs([*ended, *effects.canceled] if effects.canceled else ended, effects)
        if effects.circuits:
            self.circuits_changed(effects.circuits)
        if effects.work:
            self.wakeups.new_work(effects.work)
        if effects.skipped:
            self.events(skipped_events(effects.skipped, self._clock.now()))
        if effects.unfinished:
            self.wakeups.unfinished(effects.unfinished)
        if effects.batches:
            self._publish_batches(effects.batches)
        for call in effects.calls:
            call()
        return len(ended)

    def paused(self, moved: Sequence[Steered]) -> int:
        """Publish jobs that were paused; those that were PAUSED before are only counted."""
        new = [job for job in moved if job.left is not JobStatus.PAUSED]
        if new and self._bus.wanted(JobPaused):
            self.events(move_events(JobPaused, new, self._clock.now()))
        return len(moved)

    def resumed(self, moved: Sequence[Steered]) -> int:
        """Publish jobs that were resumed, and may be due."""
        if moved:
            self.wakeups.new_work({(job.queue, job.priority) for job in moved})
        if moved and self._bus.wanted(JobResumed):
            self.events(move_events(JobResumed, moved, self._clock.now()))
        return len(moved)

    def signaled(self, jobs: Sequence[SignaledJob], outcome: str, by: str | None) -> int:
        """Publish jobs that got a signal, and may be due; return how many."""
        if work := {(job.queue, job.priority) for job in jobs if job.released}:
            self.wakeups.new_work(work)
        if jobs and self._bus.wanted(JobSignaled):
            self.events(signal_events(jobs, outcome, by, self._clock.now()))
        return len(jobs)

    def circuits_changed(self, changes: Sequence[CircuitChange]) -> None:
        """Publish circuits that opened or closed, by calls or by hand."""
        self.wakeups.circuits_changed(changes)
        self.events(circuit_events(changes))

    def events(self, events: Sequence[Event]) -> None:
        """Publish events."""
        if events:
            self._bus.publish(events)

    def _publish_jobs(self, ended: Sequence[Ended], effects: Effects) -> None:
        stopped = [job.job_id for job in ended if job.move is Move.CANCEL and job.left is JobStatus.RUNNING]
        if stopped:
            self.wakeups.stop(stopped)
        if any(map(self._bus.wanted, JOB_EVENTS)):
            now = self._clock.now()
            self.events([event for job in ended for event in job_events(job, effects, now)])
        if self._awaited.awaits:
            self._awaited.deliver([job.as_outcome for job in ended if job.status in TERMINAL])

    def _publish_batches(self, reports: Sequence[BatchReport]) -> None:
        self.events(batch_events(reports, self._clock.now()))
        ended = [Outcome(one.batch_id, one.ended, BATCH_TARGET, one.result) for one in reports if one.ended is not None]
        if ended and self._awaited.awaits:
            self._awaited.deliver(ended)


_REQUEUED: Final = frozenset({Move.REQUEUE, Move.PARK})


def retry_times(bus: EventBus) -> Feature:
    """Return the feature that reads stored due times of retries in their transaction, if `JobRetrying` is wanted."""

    def wanted(ended: Ended) -> bool:
        return ended.outcome == "retried" and bus.wanted(JobRetrying)

    return Feature("retry times", (FollowUp(_REQUEUED, wanted, _read_due_times),))


def _read_due_times(dialect: Dialect, ended: Sequence[Ended]) -> Plan[Effects]:
    return Effects(due=(yield from jobs.due_times(dialect, [job.job_id for job in ended])))
