"""Whom an application wakes after its commits: the worker of this process, and what coordinates others.

Other processes are notified by the store, in the transaction itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, Protocol

from windlass.domain.circuit import CircuitChange
from windlass.spi import Coordinator


class LocalWorker(Protocol):
    """The worker of this process, as an application wakes it; from any thread."""

    def wake(self, work: Sequence[tuple[str, int]]) -> None:
        """There is new work at these levels of queues."""

    def look_again(self) -> None:
        """What may be claimed has changed."""

    def canceled(self, ids: Sequence[str]) -> None:
        """These jobs were canceled."""


class LocalWakeups(NamedTuple):
    """Wakes the worker of this process, if there is one."""

    worker: Callable[[], LocalWorker | None]
    coordinator: Coordinator | None

    def new_work(self, work: Collection[tuple[str, int]]) -> None:
        """There are new jobs at these levels of queues."""
        worker = self.worker()
        if worker is not None:
            worker.wake(list(work))
        if self.coordinator is not None:
            for queue, level in work:
                self.coordinator.notify_new_work(queue, level)

    def stop(self, ids: Collection[str]) -> None:
        """These jobs were canceled while they ran."""
        worker = self.worker()
        if worker is not None:
            worker.canceled(list(ids))

    def changed(self) -> None:
        """What may be claimed has changed."""
        worker = self.worker()
        if worker is not None:
            worker.look_again()

    def circuits_changed(self, changes: Sequence[CircuitChange]) -> None:
        """Circuits opened, closed or forgot their calls."""
        del changes
        self.changed()
