"""A handle on a job: its id, and the verbs that wait for it and move it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Generic, Protocol, TypeVar, cast
from uuid import UUID

from windlass.domain.flow_graph import FlowGraph
from windlass.domain.job import SubmittedJob
from windlass.domain.states import JobStatus
from windlass.runtime.verbs import Verb, adrive, drive

R_co = TypeVar("R_co", covariant=True)

Timeout = float | timedelta | None


class HandleVerbs(Protocol):
    """The verbs on a job by its id, which all handles of an application share."""

    def status(self, job_id: str) -> Verb[JobStatus]:
        """Read the current status."""
        ...

    def result(self, job_id: str, returns: Any, timeout: Timeout) -> Verb[Any]:
        """Wait for the end and return the result, decoded by the annotation `returns` or, if None, the target's."""
        ...

    def join(self, job_id: str, timeout: Timeout) -> Verb[JobStatus]:
        """Wait for the end."""
        ...

    def graph(self, job_id: str) -> Verb[FlowGraph]:
        """See `app.graph`."""
        ...

    def cancel(self, job_id: str) -> Verb[bool]:
        """See `app.cancel`."""
        ...

    def pause(self, job_id: str) -> Verb[bool]:
        """See `app.pause`."""
        ...

    def resume(self, job_id: str) -> Verb[bool]:
        """See `app.resume`."""
        ...

    def retry(self, job_id: str) -> Verb[bool]:
        """See `app.retry`."""
        ...


class StoredHandle:
    """What the handles of jobs and batches share: the id, and verbs that wait for the end and move it."""

    __slots__ = ("_duplicate", "_key", "_verbs")

    def __init__(self, submitted: SubmittedJob, verbs: HandleVerbs) -> None:
        self._key, self._duplicate = submitted.job_id, submitted.duplicate
        self._verbs = verbs

    @property
    def id(self) -> UUID:
        """The id of the job, or of the batch, which is a job's too."""
        return UUID(self._key)

    @property
    def duplicate(self) -> bool:
        """Whether an earlier one with the same key is returned; this submission then stored nothing."""
        return self._duplicate

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._key!r}{', duplicate=True' if self.duplicate else ''})"

    def status(self) -> JobStatus:
        """Return the current status. A batch is PENDING or PAUSED until its last child has ended."""
        return drive(self._verbs.status(self._key))

    async def astatus(self) -> JobStatus:
        """Async twin of `status`."""
        return await adrive(self._verbs.status(self._key))

    def join(self, timeout: float | timedelta | None = None) -> JobStatus:
        """Wait for the end and return the status; raise `TimeoutError` after `timeout` seconds."""
        return drive(self._verbs.join(self._key, timeout))

    async def ajoin(self, timeout: float | timedelta | None = None) -> JobStatus:
        """Async twin of `join`."""
        return await adrive(self._verbs.join(self._key, timeout))

    def graph(self) -> FlowGraph:
        """Return the whole flow of the job: its jobs, what follows what, its groups. A batch is one node of it.

        ```python
        handle = resize.bind("a.png").then(publish.bind(RESULT)).enqueue()
        handle.graph().counts       # {JobStatus.PENDING: 2}
        ```
        """
        return drive(self._verbs.graph(self._key))

    async def agraph(self) -> FlowGraph:
        """Async twin of `graph`."""
        return await adrive(self._verbs.graph(self._key))

    def cancel(self) -> bool:
        """Cancel it and what follows it, a batch with all its children; return False if it has ended."""
        return drive(self._verbs.cancel(self._key))

    async def acancel(self) -> bool:
        """Async twin of `cancel`."""
        return await adrive(self._verbs.cancel(self._key))

    def pause(self) -> bool:
        """Pause it; return False if it runs, or has ended other than FAILED.

        Of a batch the children that wait, and those still to be stored; what runs goes on, with its retries.
        """
        return drive(self._verbs.pause(self._key))

    async def apause(self) -> bool:
        """Async twin of `pause`."""
        return await adrive(self._verbs.pause(self._key))

    def resume(self) -> bool:
        """Let it run again, a batch with its children; return False if it is not paused."""
        return drive(self._verbs.resume(self._key))

    async def aresume(self) -> bool:
        """Async twin of `resume`."""
        return await adrive(self._verbs.resume(self._key))


class JobHandle(StoredHandle, Generic[R_co]):
    """The result of submitting a job: its id, and methods to wait for it and move it.

    ```python
    handle = charge.enqueue(42)
    handle.status()             # JobStatus.PENDING
    handle.result(timeout=10)   # "charged 42", or raises JobFailedError, JobCanceledError …
    ```
    """

    __slots__ = ("_returns",)

    def __init__(self, submitted: SubmittedJob, verbs: HandleVerbs, returns: Any = None) -> None:
        super().__init__(submitted, verbs)
        self._returns = returns

    def result(self, timeout: float | timedelta | None = None) -> R_co:
        """Wait for the job to end and return its result; a `TimeoutError` says what holds the job back."""
        return cast("R_co", drive(self._verbs.result(self._key, self._returns, timeout)))

    async def aresult(self, timeout: float | timedelta | None = None) -> R_co:
        """Async twin of `result`."""
        return cast("R_co", await adrive(self._verbs.result(self._key, self._returns, timeout)))

    def retry(self) -> bool:
        """Start the FAILED job over; return False if it is not FAILED."""
        return drive(self._verbs.retry(self._key))

    async def aretry(self) -> bool:
        """Async twin of `retry`."""
        return await adrive(self._verbs.retry(self._key))
