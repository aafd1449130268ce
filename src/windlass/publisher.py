"""After a commit: listeners, handles here and elsewhere, the poller of this node, and the other nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from windlass.engine.announce import events_of, handed_on, heads_of, lanes_of, outcomes_of, reopened
from windlass.engine.attempt import Attempt
from windlass.engine.callbacks import new_work
from windlass.engine.circuits import CircuitRecorder
from windlass.engine.known_work import KnownWork
from windlass.parts import Parts
from windlass.resilience.events import circuit_events
from windlass.stores.channels import DONE, WORK
from windlass.stores.notifier import EVERYTHING, Notifier
from windlass.submission.submit import words_for

DONE_WORD = "done"


class Telling:
    """What one node tells, once it is so."""

    def __init__(self, parts: Parts, work: KnownWork, loop: asyncio.AbstractEventLoop) -> None:
        self._parts = parts
        self._work = work
        self._loop = loop
        self._sending: set[asyncio.Task[None]] = set()
        self.circuits = CircuitRecorder(parts.settings.circuits.profile.value)
        self.when_written: Callable[[Sequence[Attempt]], None] = lambda attempts: None
        """Called after the commit with the attempts whose outcome stands."""
        self.when_kept: Callable[[Attempt], None] = lambda attempt: None
        """Called after the commit with an attempt whose body goes on, and keeps what it holds of gates."""

    async def sent(self, timeout: float) -> None:
        """Wait for what is on its way."""
        if self._sending:
            await asyncio.wait(self._sending, timeout=timeout)

    def work_came_back(self) -> None:
        """Recovered jobs are new work, to this node and, if it has no room or does not serve them, to the others."""
        self._work.changed()
        self._wake_others()

    def told(self, batch: Sequence[Attempt]) -> None:
        """After a commit: listeners, handles here and elsewhere, and the poller."""
        parts = self._parts
        self.when_written(batch)
        events = events_of(batch, parts.bus)
        if events:
            parts.bus.publish(events)
        if changes := self.circuits.take():
            self._work.circuits_changed(changes)
            parts.bus.publish(circuit_events(changes))
        back = reopened(batch)
        ended = len(back) < len(batch)
        if holders := [attempt for attempt in batch if attempt.claim.holds is not None or attempt.lingers]:
            self._places_moved(holders, told_as_done=ended)
        if ended:
            if parts.results.awaits:
                parts.results.tell(outcomes_of(batch))
            self._send(DONE, parts.done, (DONE_WORD,))
            if work := new_work(batch):
                self._work.new_work(work)
                self._hand_on(work)
        if back:
            self._hand_on(handed_on(back))
            heads = heads_of(back)
            if heads:
                self._work.expect(heads)

    def _places_moved(self, holders: Sequence[Attempt], *, told_as_done: bool) -> None:
        for attempt in holders:
            if attempt.lingers:
                self.when_kept(attempt)
        self.places_freed([attempt for attempt in holders if not attempt.lingers], told_as_done=told_as_done)

    def places_freed(self, batch: Sequence[Attempt], *, told_as_done: bool = False) -> None:
        """Whoever waits at these gates may pass, here or on another node.

        Other nodes that wait at gates also heed that jobs have ended, so that needs no words of its own.
        """
        if not batch:
            return
        self._work.permits_freed(lanes_of(batch))
        if self._parts.coordinator is not None:
            self._hand_on(sorted({(attempt.claim.queue, attempt.claim.priority) for attempt in batch}))
        elif not told_as_done:
            self._wake_others()

    def _wake_others(self) -> None:
        if self._parts.coordinator is None:
            self._send(WORK, self._parts.work, (EVERYTHING,))

    def _hand_on(self, work: Sequence[tuple[str, int]]) -> None:
        """What this node stored or gave back is new work to the others, as if it had just been enqueued."""
        if self._parts.coordinator is not None:
            for queue, level in work:
                self._parts.coordinator.notify_new_work(queue, level)
        elif work:
            self._send(WORK, self._parts.work, words_for(work))

    def _send(self, channel: str, notifier: Notifier, words: Sequence[str]) -> None:
        payload = notifier.take(words) if self._parts.database.notifies else None
        if payload is not None:
            sending = self._loop.create_task(self._parts.database.anotify(channel, payload))
            self._sending.add(sending)
            sending.add_done_callback(self._sending.discard)
