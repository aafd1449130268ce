"""The node of this process, which an application wakes directly; other processes are notified by the store."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from windlass.domain.circuit import CircuitChange
from windlass.runtime.forks import after_fork
from windlass.spi import Coordinator


class WakeableNode(Protocol):
    """How a node is woken; from any thread."""

    def wake(self, work: Sequence[tuple[str, int]]) -> None:
        """There is new work at these levels of queues."""

    def look_again(self) -> None:
        """What may be claimed has changed."""

    def canceled(self, ids: Sequence[str]) -> None:
        """These jobs were canceled."""


class LocalNode:
    """Wakes the node that an application runs in this process, if it does, and what coordinates others."""

    def __init__(self, coordinator: Coordinator | None) -> None:
        self._coordinator = coordinator
        self._node: WakeableNode | None = None
        after_fork(self.leave)

    def enter(self, node: WakeableNode) -> None:
        """From now on this node is woken."""
        self._node = node

    def leave(self) -> None:
        """The node has left; or it stayed with the parent of a fork."""
        self._node = None

    def new_work(self, work: Collection[tuple[str, int]]) -> None:
        """There are new jobs at these levels of queues."""
        node = self._node
        if node is not None:
            node.wake(list(work))
        if self._coordinator is not None:
            for queue, level in work:
                self._coordinator.notify_new_work(queue, level)

    def stop(self, ids: Collection[str]) -> None:
        """These jobs were canceled while they ran."""
        node = self._node
        if node is not None:
            node.canceled(list(ids))

    def changed(self) -> None:
        """What may be claimed has changed."""
        node = self._node
        if node is not None:
            node.look_again()

    def circuits_changed(self, changes: Sequence[CircuitChange]) -> None:
        """Circuits opened, closed or forgot their calls."""
        del changes
        self.changed()
