"""Passes the rejects of an execution to the sink of its pipeline: before the commit, or after it.

A sink outside of the store gets them from the outbox, unless its failure is that of the step: what is passed on here
after a commit goes to the log or into memory, or to a sink that is not durable.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial
from typing import NamedTuple

from windlass import loggers
from windlass.domain.execution_items import NewReject
from windlass.domain.reject import Reject, SinkFailure
from windlass.errors import JobTimeoutError
from windlass.execution_errors import RejectSinkError
from windlass.pipelines.reject_sinks import QUICK, StoreSink, is_fed, reject_to
from windlass.runtime.threads import Interrupted
from windlass.spi import RejectSink

logger = loggers.logger("windlass.rejects")

_LATER: set[asyncio.Task[None]] = set()
"""Deliveries under way; the loop itself does not keep its tasks alive."""


class RejectDelivery(NamedTuple):
    """The sink of one pipeline, as its claims use it."""

    sink: RejectSink
    failure: SinkFailure
    made: Callable[[NewReject], Reject]
    wake_relay: Callable[[], None]
    """Called after a commit that has put rejects into the outbox."""
    beside: Callable[[str, Callable[[], None]], Awaitable[None]]
    """Calls users' code on a thread, with a time limit; raises `JobTimeoutError`. The argument before it names it."""
    describe: Callable[[BaseException], str]
    """Returns an error's text: sanitised."""

    @property
    def is_fed(self) -> bool:
        """Whether the sink gets its rejects from the outbox."""
        return is_fed(self.sink, self.failure)

    @property
    def _idle(self) -> bool:
        return isinstance(self.sink, StoreSink)

    # ------------------------------------------------------------------ before the commit

    async def offer(self, rejects: Sequence[NewReject]) -> None:
        """Pass rejects on that are about to be stored, if the step depends on it; raises `RejectSinkError`."""
        if self._offers(rejects):
            if isinstance(self.sink, QUICK):
                self.offer_blocking(rejects)
            else:
                try:
                    await self.beside("the sink of rejects", partial(self.offer_blocking, rejects))
                except JobTimeoutError as error:
                    raise RejectSinkError(rejects[0].id, rejects[0].step_name, error) from error

    def offer_blocking(self, rejects: Sequence[NewReject]) -> None:
        """Do the same on a thread."""
        if not self._offers(rejects):
            return
        for reject in map(self.made, rejects):
            try:
                reject_to(self.sink, reject)
            except Interrupted:
                raise
            except BaseException as error:
                raise RejectSinkError(reject.id, reject.step_name, error) from error

    def _offers(self, rejects: Sequence[NewReject]) -> bool:
        return bool(rejects) and not self._idle and self.failure is SinkFailure.FAIL_PIPELINE

    # ------------------------------------------------------------------ after it

    async def deliver(self, rejects: Sequence[NewReject], new: Collection[str]) -> None:
        """Pass rejects on that were stored; those that were there before are left out. A failure is logged."""
        fresh = self._fresh(rejects, new)
        if not fresh:
            return
        if isinstance(self.sink, QUICK):
            self._deliver(fresh)
        else:
            await self._deliver_beside(fresh)

    def deliver_blocking(self, rejects: Sequence[NewReject], new: Collection[str]) -> None:
        """Do the same on a thread."""
        self._deliver(self._fresh(rejects, new))

    def deliver_later(self, rejects: Sequence[NewReject]) -> None:
        """Do the same for new rejects without waiting; called on the loop, or where there is none."""
        if not rejects or self._idle or self.failure is SinkFailure.FAIL_PIPELINE:
            return
        if self.is_fed:
            self.wake_relay()
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._deliver(rejects)
            return
        if isinstance(self.sink, QUICK):
            self._deliver(rejects)
            return
        task = loop.create_task(self._deliver_beside(rejects))
        _LATER.add(task)
        task.add_done_callback(_LATER.discard)

    def _fresh(self, rejects: Sequence[NewReject], new: Collection[str]) -> list[NewReject]:
        if self._idle or self.failure is SinkFailure.FAIL_PIPELINE:
            return []
        fresh = [reject for reject in rejects if reject.id in new]
        if self.is_fed:
            if fresh:
                self.wake_relay()
            return []
        return fresh

    async def _deliver_beside(self, rejects: Sequence[NewReject]) -> None:
        try:
            await self.beside("the sink of rejects", partial(self._deliver, rejects))
        except JobTimeoutError as error:
            logger.error(
                "execution %s: %s; the execution continues, and the rest of %d rejects is not sent to the sink again",
                *(rejects[0].execution_id, error, len(rejects)),
            )

    def _deliver(self, rejects: Sequence[NewReject]) -> None:
        for new in rejects:
            try:
                reject_to(self.sink, self.made(new))
            except Interrupted:
                raise
            except BaseException as error:  # noqa: BLE001 - users' code; the execution goes on
                logger.error(
                    "execution %s: the sink did not take reject %s of step %s (%s); the execution continues%s",
                    *(new.execution_id, new.id, new.step_name, self.describe(error)),
                    ", and the store keeps the reject" if new.kept else "",
                )
