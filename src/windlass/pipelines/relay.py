"""The relay: delivers what waits for one destination outside of the database, under a lease of its own.

Each destination has its own relay, with its own lease, threads and backoff, so that a dead or slow one holds up no
other. A row is marked after its delivery, so that a crash between the two delivers it again, with the same key.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from windlass.domain.clock import MICROSECONDS, monotonic
from windlass.domain.delivery_outcomes import AT_ONCE, DestinationHealth, failure_of
from windlass.domain.rhythm import Always
from windlass.errors import StoreUnavailableError
from windlass.feature import NodeTools
from windlass.pipelines.delivery_attempts import Route, settlement_of
from windlass.pipelines.outlets import deliver_to, timeout_of
from windlass.runtime.duty import Duty, LeaseLostError
from windlass.runtime.failpoints import reached
from windlass.runtime.service import Bell
from windlass.runtime.threads import BodyExit, BodyStillRuns, ThreadBodies
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan
from windlass.stores.plans.delivery_rows import DueDelivery, Settlement

MOST_ROWS: Final = 100
"""Number of rows that one batch reads."""
LONGEST_SLEEP: Final = 5.0
"""Seconds after which the store is queried in any case: another process may have written rows."""
RECHECK_AFTER: Final = 1.0
"""Seconds after which to look again at what another node delivers."""
MARK_INTERVAL: Final = 1.0
"""Seconds after which finished deliveries are marked, and the lease is renewed, while others take longer."""
GRACE: Final = 3.0
"""Seconds that a stopped relay waits for deliveries that have begun."""


class _Begun(NamedTuple):
    """A delivery under way."""

    row: DueDelivery
    until: float
    """When it counts as failed, on the monotonic clock."""


class Relay(Duty):
    """Delivers to one destination."""

    def __init__(
        self, route: Route, tools: NodeTools, describe: Callable[[BaseException], str], bell: Bell | None = None
    ) -> None:
        self._source, self._outlet = route
        name = f"relay to {self._source.destination}"
        self._lease = tools.lease(name, Always())
        super().__init__(name, self._lease, tools.errors, bell)
        self._database = tools.database
        self._describe = describe
        self._timeout = timeout_of(self._outlet)
        self._health = DestinationHealth()
        self._rests_until = 0.0
        self._threads: ThreadBodies | None = None
        self._busy: set[asyncio.Task[None]] = set()
        """Calls on threads, also those that took too long: they keep their slot until they end."""
        self._begun: dict[asyncio.Task[None], _Begun] = {}
        """Calls that do not count as failed. They outlive a pass that loses its lease or the store."""
        self._unmarked: list[Settlement] = []
        """What became of deliveries, until it is written."""
        self._full = False

    async def tick(self) -> float | None:
        """Deliver what is due; return the seconds until something is."""
        resting = self._rests_until - monotonic()
        if resting > 0:
            return resting
        if self._is_full():
            return RECHECK_AFTER
        wait = await self._database.aread(self._source.next_due)
        if wait is None or wait > 0:
            return LONGEST_SLEEP if wait is None else min(wait / MICROSECONDS, LONGEST_SLEEP)
        pause = await super().tick()
        return min(RECHECK_AFTER if pause is None else pause, RECHECK_AFTER)

    async def stop(self, grace: float = 5.0) -> None:
        """Stop, and interrupt calls that have not ended."""
        await super().stop(grace)
        for call in self._busy:
            call.cancel()
        if self._threads is not None:
            self._threads.close()
            self._threads = None

    def rest_after(self, seconds: float) -> float:
        """Return no pause between batches: most of their time is spent outside of the store."""
        del seconds
        return 0.0

    async def batch(self) -> bool:
        """Deliver one batch; return True if there may be more."""
        rows = await self._lease.run(self._due)
        if not rows:
            return False
        reached("relay.claimed")
        await self._deliver(rows)
        if self._health.must_rest:
            seconds, self._health = self._health.rest(random.random())  # noqa: S311 - spreads tries, guards nothing
            self._rests_until = monotonic() + seconds
            return False
        return not self._is_full()

    def _due(self, dialect: Dialect) -> Plan[list[DueDelivery]]:
        """Return the rows of one batch, those that have failed least often first.

        After a failure half of them are those that are due for the shortest time: a hundred rows that always fail
        would otherwise be tried one by one, with a rest after each, before any of those behind them.
        """
        if not self._health.rests:
            rows = yield from self._source.due(dialect, MOST_ROWS)
            return sorted(rows, key=_attempts)
        rows = yield from self._source.due(dialect, MOST_ROWS // 2, latest=True)
        rows += yield from self._source.due(dialect, MOST_ROWS // 2)
        chosen = list({row.id: row for row in rows}.values())
        if self._health.rests % 2 == 0:
            random.shuffle(chosen)  # the latest ones have failed as well
        return sorted(chosen, key=_attempts)

    def _is_full(self) -> bool:
        """Return whether calls that took too long occupy all slots, and log that once."""
        full = len(self._busy) >= AT_ONCE
        if full and not self._full:
            self._source.logger.error(
                "relay to %s: %d calls of its outlet have not ended after %g s; nothing is delivered there until one "
                "of them ends: give the calls of this outlet a time limit",
                *(self._source.destination, len(self._busy), self._timeout),
            )
        self._full = full
        return full

    async def _deliver(self, rows: Sequence[DueDelivery]) -> None:
        """Deliver rows, several at a time, and mark them as they end, those of an earlier pass among them."""
        begun = self._begun
        known = {one.row.id for one in begun.values()} | {one.id for one in self._unmarked}
        waiting = deque(row for row in rows if row.id not in known)
        marked = monotonic()
        stopped_at: float | None = None
        while True:
            while waiting and self._may_begin(len(begun)):
                row = waiting.popleft()
                begun[self._begin(row)] = _Begun(row, monotonic() + self._timeout)
            if not begun or (stopped_at is not None and monotonic() > stopped_at + GRACE):
                break
            until = min(marked + MARK_INTERVAL, *(one.until for one in begun.values()))
            await asyncio.wait(begun, timeout=max(until - monotonic(), 0), return_when=asyncio.FIRST_COMPLETED)
            self._unmarked += self._ended(begun)
            if monotonic() >= marked + MARK_INTERVAL:
                await self._mark()
                marked = monotonic()
            if not self.alive and stopped_at is None:
                stopped_at = monotonic()
        if self._unmarked:
            await self._mark()

    def _may_begin(self, under_way: int) -> bool:
        health = self._health
        return self.alive and under_way < health.at_once and len(self._busy) < AT_ONCE and not health.must_rest

    def _begin(self, row: DueDelivery) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(self._call(row))
        self._busy.add(task)
        task.add_done_callback(self._call_ended)
        return task

    async def _call(self, row: DueDelivery) -> None:
        delivery = self._source.delivery(row)
        if self._threads is None:
            self._threads = ThreadBodies(asyncio.get_running_loop())
        try:
            await self._threads.run(lambda: deliver_to(self._outlet, delivery))
        except BodyStillRuns as call:
            if self.alive:
                await _end_of(call)
            raise

    def _call_ended(self, task: asyncio.Task[None]) -> None:
        self._busy.discard(task)
        if not task.cancelled():
            task.exception()  # it is recorded where the call was not given up before

    # ------------------------------------------------------------------ what became of them

    def _ended(self, begun: dict[asyncio.Task[None], _Begun]) -> list[Settlement]:
        """Take those that have ended, and those that take too long, from the ones under way."""
        now, found = monotonic(), []
        for task, one in list(begun.items()):
            if task.done():
                error = asyncio.CancelledError() if task.cancelled() else task.exception()
            elif one.until <= now:
                error = TimeoutError(f"no answer within {self._timeout:g} s")
                task.cancel()
            else:
                continue
            del begun[task]
            found.append(self._settlement(one.row, error.error if isinstance(error, BodyExit) else error))
        return found

    def _settlement(self, row: DueDelivery, error: BaseException | None) -> Settlement:
        failure = None if error is None else failure_of(error)
        if failure is None or failure.final:
            self._health = self._health.answered()
        else:
            self._health = self._health.failed(failure.asked)
        return settlement_of(self._source, row, error, self._describe)

    async def _mark(self) -> None:
        """Write what became of deliveries, or only renew the lease; raises `LeaseLostError` if it was lost.

        What could not be written then is written by a later pass: its number of tries says whether it still holds.
        """
        ended = list(self._unmarked)
        reached("relay.delivered", lambda: bool(ended))
        if not ended:
            await self._lease.run(_nothing)
            return
        try:
            written = await self._lease.run(self._source.settle, ended)
        except (LeaseLostError, StoreUnavailableError):
            raise
        except Exception:
            self._unmarked.clear()  # whatever the store refuses there must not hold up what follows
            raise
        self._unmarked.clear()
        if written != len(ended):
            self._source.logger.warning(
                "relay to %s: %d of %d deliveries had been settled or tried by others meanwhile; they are not marked",
                *(self._source.destination, len(ended) - written, len(ended)),
            )


def _attempts(row: DueDelivery) -> int:
    return row.attempts


async def _end_of(call: BodyStillRuns) -> None:
    """Wait until an interrupted call has ended on its thread."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()

    def end() -> None:
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(ended.set)

    call.when_ended(end)
    await ended.wait()


def _nothing(dialect: Dialect) -> Plan[None]:
    """Write nothing: the lease is renewed in any case."""
    del dialect
    yield from ()
