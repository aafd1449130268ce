"""Notifications of other processes, and their effect here: known work, and canceled jobs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Final

from windlass.engine.cancellations import Cancellations
from windlass.engine.known_work import KnownWork
from windlass.runtime.service import Bell
from windlass.spi import Coordinator
from windlass.stores.channels import CANCELED, DONE, SCHEDULES, WORK
from windlass.stores.database import LOST, Database, Wakeups

LEVELS: Final = frozenset("0123456789")
"""Priorities in notifications. Any client can send one: an invalid level must not reach a statement."""


class WakeupBridge:
    """Listens for notifications, and reports them on the node's loop, on which it is created.

    `when_lost` is called on the loop, with the reason, when the store is lost for good.
    """

    def __init__(
        self,
        database: Database,
        work: KnownWork,
        coordinator: Coordinator | None,
        own_payloads: Collection[str],
        cancellations: Cancellations,
        when_lost: Callable[[str], None],
        schedule_changes: Bell,
    ) -> None:
        self._cancellations = cancellations
        self._database = database
        self._work = work
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._coordinator = coordinator
        self._wakeups: Wakeups | None = None
        self._own_payloads = own_payloads  # this process knows already
        self._when_lost = when_lost
        self._schedule_changes = schedule_changes

    def open(self) -> None:
        """Start listening: to the coordinator if there is one, else to the store."""
        if self._coordinator is not None:
            self._coordinator.listen(lambda queue, level: self.wake(((queue, level),)))
        self._wakeups = self._database.listen(self._receive, self._loop)

    def wake(self, work: Sequence[tuple[str, int]]) -> None:
        """Report new work of this process; from any thread."""
        self._on_loop(lambda: self._work.new_work(work))

    def look_again(self) -> None:
        """Report that claimable work has changed; from any thread."""
        self._on_loop(self._work.changed)

    def canceled(self, ids: Sequence[str]) -> None:
        """Report jobs canceled in this process; from any thread."""
        self._on_loop(partial(self._cancellations.canceled, frozenset(ids)))

    def schedules_changed(self) -> None:
        """Report that the next tick of a schedule may have changed; from any thread."""
        self._schedule_changes.ring()

    def _receive(self, channel: str, payload: str) -> None:
        if channel == LOST:
            self._on_loop(partial(self._when_lost, payload))
            return
        if channel == SCHEDULES:
            self.schedules_changed()
            return
        if channel in (CANCELED, ""):
            self._on_loop(partial(self._cancellations.hinted, frozenset(payload.split(",") if payload else ())))
        sender, _, parts = payload.partition(" ")
        if sender in self._own_payloads:
            return
        if channel == DONE and self._database.notifies:  # else it would be reported as work, too
            self._on_loop(self._work.jobs_ended)
        if channel not in (WORK, ""):
            return
        pairs = [part.rpartition(":") for part in parts.split(",")]
        if all(queue and level in LEVELS for queue, _, level in pairs):
            self.wake([(queue, int(level)) for queue, _, level in pairs])
        else:  # everything, or a payload that is not ours
            self._on_loop(self._work.changed)

    def _on_loop(self, action: Callable[[], object]) -> None:
        if threading.get_ident() == self._thread:
            action()
            return
        try:
            self._loop.call_soon_threadsafe(action)
        except RuntimeError:
            self.close()  # the loop is closed

    def close(self) -> None:
        """Stop listening."""
        if self._wakeups is not None:
            self._wakeups.close()
            self._wakeups = None
