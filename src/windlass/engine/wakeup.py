"""Notifications of other processes, and what they change here: known work, and jobs that are canceled."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Final

from windlass.engine.cancellations import Cancellations
from windlass.engine.known_work import KnownWork
from windlass.spi import Coordinator
from windlass.stores.channels import CANCELED, DONE, WORK
from windlass.stores.database import LOST, Database, Wakeups

LEVELS: Final = frozenset("0123456789")
"""Priorities as notifications name them. Anybody can send one: a level that no statement takes must not reach one."""


class WakeupBridge:
    """Listens, and reports on the node's loop, on which it is made.

    `when_lost` is called on the loop, with the reason, when the store is gone for good.
    """

    def __init__(
        self,
        database: Database,
        work: KnownWork,
        coordinator: Coordinator | None,
        own_words: Collection[str],
        cancellations: Cancellations,
        when_lost: Callable[[str], None],
    ) -> None:
        self._cancellations = cancellations
        self._database = database
        self._work = work
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._coordinator = coordinator
        self._wakeups: Wakeups | None = None
        self._own_words = own_words  # what they say is known already
        self._when_lost = when_lost

    def open(self) -> None:
        """Start to listen: to the coordinator where there is one, else to the store."""
        if self._coordinator is not None:
            self._coordinator.listen(lambda queue, level: self.wake(((queue, level),)))
        self._wakeups = self._database.listen(self._heard, self._loop)

    def wake(self, work: Sequence[tuple[str, int]]) -> None:
        """New work of this process; from any thread."""
        self._on_loop(lambda: self._work.new_work(work))

    def look_again(self) -> None:
        """What may be claimed has changed; from any thread."""
        self._on_loop(self._work.changed)

    def canceled(self, ids: Sequence[str]) -> None:
        """Jobs canceled in this process; from any thread."""
        self._on_loop(partial(self._cancellations.canceled, frozenset(ids)))

    def _heard(self, channel: str, payload: str) -> None:
        if channel == LOST:
            self._on_loop(partial(self._when_lost, payload))
            return
        if channel in (CANCELED, ""):
            self._on_loop(partial(self._cancellations.hinted, frozenset(payload.split(",") if payload else ())))
        sender, _, words = payload.partition(" ")
        if sender in self._own_words:
            return
        if channel == DONE and self._database.notifies:  # else it is told as work, too
            self._on_loop(self._work.jobs_ended)
        if channel not in (WORK, ""):
            return
        pairs = [word.rpartition(":") for word in words.split(",")]
        if all(queue and level in LEVELS for queue, _, level in pairs):
            self.wake([(queue, int(level)) for queue, _, level in pairs])
        else:  # everything, or words that are not ours
            self._on_loop(self._work.changed)

    def _on_loop(self, action: Callable[[], object]) -> None:
        if threading.get_ident() == self._thread:
            action()
            return
        try:
            self._loop.call_soon_threadsafe(action)
        except RuntimeError:
            self.close()  # the loop is gone

    def close(self) -> None:
        """Stop listening."""
        if self._wakeups is not None:
            self._wakeups.close()
            self._wakeups = None
