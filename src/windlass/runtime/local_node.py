"""The node of this process, which an application wakes directly; other processes are notified by the store."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from windlass.domain.circuit import CircuitChange
from windlass.domain.ended import Unfinished
from windlass.runtime.forks import after_fork
from windlass.spi import Coordinator


class WakeableNode(Protocol):
    """The methods that wake a node; from any thread."""

    def wake(self, work: Sequence[tuple[str, int]]) -> None:
        """Report new work at these levels of queues."""

    def look_again(self) -> None:
        """Report that claimable work has changed."""

    def canceled(self, ids: Sequence[str]) -> None:
        """Report canceled jobs."""

    def schedules_changed(self) -> None:
        """Report that the next tick of a schedule may have changed."""


class LocalNode:
    """Wakes the application's node in this process, if it runs one, and the coordinator of others."""

    def __init__(self, coordinator: Coordinator | None) -> None:
        self._coordinator = coordinator
        self._node: WakeableNode | None = None
        after_fork(self.detach)

    def attach(self, node: WakeableNode) -> None:
        """Wake this node from now on."""
        self._node = node

    def detach(self) -> None:
        """Stop waking the node: it has ended, or stayed with the parent of a fork."""
        self._node = None

    def new_work(self, work: Collection[tuple[str, int]]) -> None:
        """Wake for new jobs at these levels of queues."""
        node = self._node
        if node is not None:
            node.wake(list(work))
        if self._coordinator is not None:
            for queue, level in work:
                self._coordinator.notify_new_work(queue, level)

    def stop(self, ids: Collection[str]) -> None:
        """Stop jobs that were canceled while they ran."""
        node = self._node
        if node is not None:
            node.canceled(list(ids))

    def changed(self) -> None:
        """Wake because claimable work has changed."""
        node = self._node
        if node is not None:
            node.look_again()

    def schedules_changed(self) -> None:
        """Wake because the next tick of a schedule may have changed."""
        node = self._node
        if node is not None:
            node.schedules_changed()

    def unfinished(self, work: Unfinished) -> None:
        """Do nothing: verbs carry out the unfinished work of their commits."""

    def circuits_changed(self, changes: Sequence[CircuitChange]) -> None:
        """Wake for circuits that opened, closed or were reset."""
        del changes
        self.changed()
