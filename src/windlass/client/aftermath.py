"""After people have moved jobs: events, handles that wait, and the worker of this process.

Other processes are told by the store, in the very transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar
from uuid import UUID

from windlass.client.results import Results
from windlass.domain.job import Outcome
from windlass.domain.states import JobStatus
from windlass.events.bus import EventBus
from windlass.events.types import JobCanceled, JobEvent, JobPaused, JobResumed
from windlass.resilience.events import circuit_events
from windlass.runtime.failpoints import reached
from windlass.spi import Clock
from windlass.stores.plans.limits import CircuitChange
from windlass.stores.plans.moves import Steered

E = TypeVar("E", bound=JobEvent)


class Aftermath(NamedTuple):
    """What an application does about jobs that were moved."""

    bus: EventBus
    results: Results
    clock: Clock
    wake: Callable[[Sequence[tuple[str, int]]], None]
    """New work at these levels of queues."""
    stop: Callable[[Sequence[str]], None]
    """These jobs must not run on."""
    look_again: Callable[[], None]
    """What may be claimed has changed."""

    def canceled(self, moved: Sequence[Steered], reason: str = "canceled") -> int:
        """Stop what runs here, and let nobody wait any longer."""
        reached("cancel.after_commit")
        if moved:
            self.stop([job.job_id for job in moved if job.left is JobStatus.RUNNING])
            self.results.tell([Outcome(job.job_id, JobStatus.CANCELED, job.target) for job in moved])
            self._publish(JobCanceled, moved, reason=reason)
        return len(moved)

    def paused(self, moved: Sequence[Steered]) -> int:
        """Those that were PAUSED before were not moved, and are nothing new."""
        self._publish(JobPaused, [job for job in moved if job.left is not JobStatus.PAUSED])
        return len(moved)

    def resumed(self, moved: Sequence[Steered]) -> int:
        """They may be due."""
        self._wake(moved)
        self._publish(JobResumed, moved)
        return len(moved)

    def retried(self, moved: Sequence[Steered]) -> int:
        """They are due."""
        self._wake(moved)
        return len(moved)

    def circuits_changed(self, changes: Sequence[CircuitChange]) -> None:
        """Circuits were switched by hand."""
        self.look_again()
        if changes:
            self.bus.publish(circuit_events(changes))

    def _wake(self, moved: Sequence[Steered]) -> None:
        work = sorted({(job.queue, job.priority) for job in moved})
        if work:
            self.wake(work)

    def _publish(self, kind: type[E], moved: Sequence[Steered], **more: str) -> None:
        if moved and self.bus.wanted(kind):
            at = self.clock.now()
            self.bus.publish(
                [
                    kind(
                        job_id=UUID(job.job_id),
                        target=job.target,
                        queue=job.queue,
                        correlation_id=job.correlation_id,
                        at=at,
                        **more,
                    )
                    for job in moved
                ]
            )
