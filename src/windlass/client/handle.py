"""A handle on a job: its id, and ways to follow it."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, cast
from uuid import UUID

from windlass.client.access import Access
from windlass.client.authorization import Authorization
from windlass.client.results import Results
from windlass.client.waits import JobWait
from windlass.context import current_context
from windlass.domain.durations import seconds
from windlass.domain.explanation import Explanation
from windlass.domain.job import Outcome, Placed
from windlass.domain.states import TERMINAL, JobStatus
from windlass.errors import (
    JobCanceledError,
    JobFailedError,
    JobNotFoundError,
    ResultDroppedError,
    WouldBlockLoopError,
)
from windlass.stores.plans import reads
from windlass.submission.tagged import DroppedResult

R = TypeVar("R")

Timeout = float | timedelta | None


EXPLAIN_WITHIN = 1.0
"""Seconds that a wait which is over takes at most to find out why."""


class Steerer(Protocol):
    """What moves jobs and explains where they are; the application implements it."""

    def explain(self, job_id: UUID | str) -> Explanation:
        """See `app.explain`."""
        ...

    async def aexplain(self, job_id: UUID | str) -> Explanation:
        """See `app.aexplain`."""
        ...

    def cancel(self, job_id: UUID | str) -> bool:
        """See `app.cancel`."""

    async def acancel(self, job_id: UUID | str) -> bool:
        """See `app.acancel`."""

    def pause(self, job_id: UUID | str) -> bool:
        """See `app.pause`."""

    async def apause(self, job_id: UUID | str) -> bool:
        """See `app.apause`."""

    def resume(self, job_id: UUID | str) -> bool:
        """See `app.resume`."""

    async def aresume(self, job_id: UUID | str) -> bool:
        """See `app.aresume`."""

    def retry(self, job_id: UUID | str) -> bool:
        """See `app.retry`."""

    async def aretry(self, job_id: UUID | str) -> bool:
        """See `app.aretry`."""


class Following(NamedTuple):
    """What the handles of one application share."""

    access: Access
    results: Results
    decode: Callable[[Outcome, Any], Any]
    """A result by its return annotation, or, without one, by the target's."""
    steering: Steerer
    authorization: Authorization
    slots_taken: Callable[[], int | None] = lambda: None
    """How many slots the worker of this process has, if all of them are taken; else None."""


class StoredHandle(Generic[R]):
    """Follows one job.

    ```python
    handle = charge.enqueue(42)
    handle.status()             # JobStatus.PENDING
    handle.result(timeout=10)   # "charged 42", or raises JobFailedError, JobCanceledError …
    ```
    """

    __slots__ = ("_following", "_key", "_returns", "duplicate")

    def __init__(self, place: Placed, following: Following, returns: Any) -> None:
        self._key, self.duplicate = place.job_id, place.duplicate
        self._following = following
        self._returns = returns

    @property
    def id(self) -> UUID:
        """The job's id."""
        return UUID(self._key)

    def __repr__(self) -> str:
        return f"JobHandle({self._key!r}{', duplicate=True' if self.duplicate else ''})"

    def status(self) -> JobStatus:
        """The job's present status."""
        self._following.authorization.check("get", self._key)
        return self._read().status

    async def astatus(self) -> JobStatus:
        """Async twin of `status`."""
        await self._following.authorization.acheck("get", self._key)
        return (await self._aread()).status

    def result(self, timeout: Timeout = None) -> R:
        """Wait for the job to end and give what it returned; `TimeoutError` says what keeps the job."""
        return self._value(self._wait(timeout, "result"))

    async def aresult(self, timeout: Timeout = None) -> R:
        """Async twin of `result`."""
        return self._value(await self._await(timeout))

    def join(self, timeout: Timeout = None) -> JobStatus:
        """Wait for the job to end and give its status."""
        return self._wait(timeout, "join").status

    async def ajoin(self, timeout: Timeout = None) -> JobStatus:
        """Async twin of `join`."""
        return (await self._await(timeout)).status

    # ------------------------------------------------------------------ steering

    def cancel(self) -> bool:
        """End the job; False if it has ended."""
        return self._following.steering.cancel(self._key)

    async def acancel(self) -> bool:
        """Async twin of `cancel`."""
        return await self._following.steering.acancel(self._key)

    def pause(self) -> bool:
        """Hold the job; False if it runs, or has ended other than FAILED."""
        return self._following.steering.pause(self._key)

    async def apause(self) -> bool:
        """Async twin of `pause`."""
        return await self._following.steering.apause(self._key)

    def resume(self) -> bool:
        """Let the paused job go on; False if it is not paused."""
        return self._following.steering.resume(self._key)

    async def aresume(self) -> bool:
        """Async twin of `resume`."""
        return await self._following.steering.aresume(self._key)

    def retry(self) -> bool:
        """Start the FAILED job over; False if it is not FAILED."""
        return self._following.steering.retry(self._key)

    async def aretry(self) -> bool:
        """Async twin of `retry`."""
        return await self._following.steering.aretry(self._key)

    # ------------------------------------------------------------------ waiting

    def _wait(self, timeout: Timeout, verb: str) -> Outcome:
        limit = None if timeout is None else seconds(timeout, "timeout")
        _refuse_on_a_loop(verb)
        self._following.authorization.check("get", self._key)
        future = self._following.results.expect(self._key)
        try:
            outcome = self._read()
            if outcome.status in TERMINAL:
                return outcome
            context = current_context.get()
            if context is not None:
                return JobWait(context, outcome, self._following.slots_taken).result(future, limit)
            return future.result(limit)
        except TimeoutError:
            found = self._explain() if limit else None
            raise TimeoutError(_not_finished(self._key, limit, found)) from None
        finally:
            self._following.results.forget(self._key, future)

    async def _await(self, timeout: Timeout) -> Outcome:
        limit = None if timeout is None else seconds(timeout, "timeout")
        await self._following.authorization.acheck("get", self._key)
        future = await self._following.results.aexpect(self._key)
        try:
            outcome = await self._aread()
            if outcome.status in TERMINAL:
                return outcome
            context = current_context.get()
            if context is not None:
                return await JobWait(context, outcome, self._following.slots_taken).aresult(future, limit)
            return await asyncio.wait_for(asyncio.wrap_future(future), limit)
        except TimeoutError:
            found = await self._aexplain() if limit else None
            raise TimeoutError(_not_finished(self._key, limit, found)) from None
        finally:
            self._following.results.forget(self._key, future)

    def _explain(self) -> Explanation | None:
        """Why the job has not ended; None if that cannot be had soon. On a thread: a store may take long to fail."""
        found: list[Explanation] = []

        def ask() -> None:
            with contextlib.suppress(Exception):
                found.append(self._following.steering.explain(self._key))

        asking = threading.Thread(
            target=contextvars.copy_context().run, args=(ask,), name="windlass-explain", daemon=True
        )
        asking.start()
        asking.join(EXPLAIN_WITHIN)
        return found[0] if found else None

    async def _aexplain(self) -> Explanation | None:
        """Async twin of `_explain`."""
        with contextlib.suppress(Exception):
            return await asyncio.wait_for(self._following.steering.aexplain(self._key), EXPLAIN_WITHIN)
        return None

    def _read(self) -> Outcome:
        return _only(self._key, self._following.access.read(reads.outcomes, [self._key]))

    async def _aread(self) -> Outcome:
        return _only(self._key, await self._following.access.aread(reads.outcomes, [self._key]))

    def _value(self, outcome: Outcome) -> R:
        if outcome.status is JobStatus.FAILED:
            told = (outcome.reason or "", outcome.error or "", outcome.error_class or "")
            raise JobFailedError(UUID(outcome.job_id), *told)
        if outcome.status is JobStatus.CANCELED:
            raise JobCanceledError(UUID(outcome.job_id), outcome.reason or "canceled")
        value = self._following.decode(outcome, self._returns)
        if isinstance(value, DroppedResult):
            raise ResultDroppedError(UUID(outcome.job_id), value.reason)
        return cast("R", value)


def _only(job_id: str, outcomes: list[Outcome]) -> Outcome:
    if not outcomes:
        raise JobNotFoundError(UUID(job_id))
    return outcomes[0]


def _not_finished(job_id: str, limit: float | None, found: Explanation | None) -> str:
    why = "" if found is None else f": {found.message} ({found.code})"
    return (
        f"job {job_id} did not finish within {limit:g} s{why}. The job is not affected; the handle can be asked again"
    )


def _refuse_on_a_loop(verb: str) -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise WouldBlockLoopError(
        f"{verb}() would block the event loop that runs on this thread, and with it perhaps the very job; "
        f"write `await handle.a{verb}()` instead"
    )
