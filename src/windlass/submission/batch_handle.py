"""A handle on a batch: its progress, and the verbs that wait for it and move it with all its children."""

from __future__ import annotations

from typing import Protocol
from uuid import UUID

from windlass.domain.batch import BatchProgress
from windlass.domain.flow_graph import FlowGraph
from windlass.domain.job import SubmittedJob
from windlass.domain.states import JobStatus
from windlass.runtime.verbs import Verb, adrive, drive
from windlass.submission.handle import HandleVerbs, Timeout


class BatchVerbs(HandleVerbs, Protocol):
    """The verbs on a batch by its id: those on any job, and its own."""

    def progress(self, job_id: str) -> Verb[BatchProgress]:
        """Read the progress."""
        ...

    def retry_failed(self, job_id: str) -> Verb[int]:
        """Start failed children over."""
        ...


class BatchHandle:
    """The result of submitting a batch: its id, its progress, and methods to wait for it and move it.

    ```python
    handle = app.batch("import users").each(import_user, rows).enqueue()
    handle.progress().percent   # 42.0
    handle.join(timeout=60)     # JobStatus.SUCCEEDED
    ```
    """

    __slots__ = ("_duplicate", "_key", "_verbs")

    def __init__(self, place: SubmittedJob, verbs: BatchVerbs) -> None:
        self._key, self._duplicate = place.job_id, place.duplicate
        self._verbs = verbs

    @property
    def id(self) -> UUID:
        """The id of the batch, which is a job's."""
        return UUID(self._key)

    @property
    def duplicate(self) -> bool:
        """Whether an earlier batch with the same key is returned that is loaded; nothing was stored then."""
        return self._duplicate

    def progress(self) -> BatchProgress:
        """Return how many children are stored and have ended."""
        return drive(self._verbs.progress(self._key))

    async def aprogress(self) -> BatchProgress:
        """Async twin of `progress`."""
        return await adrive(self._verbs.progress(self._key))

    def status(self) -> JobStatus:
        """Return the status: PENDING or PAUSED until the last child has ended; then SUCCEEDED if none has failed."""
        return drive(self._verbs.status(self._key))

    async def astatus(self) -> JobStatus:
        """Async twin of `status`."""
        return await adrive(self._verbs.status(self._key))

    def join(self, timeout: Timeout = None) -> JobStatus:
        """Wait for the batch to end and return its status; raise `TimeoutError` after `timeout` seconds."""
        return drive(self._verbs.join(self._key, timeout))

    async def ajoin(self, timeout: Timeout = None) -> JobStatus:
        """Async twin of `join`."""
        return await adrive(self._verbs.join(self._key, timeout))

    def graph(self) -> FlowGraph:
        """Return the batch, as one node, with what follows it."""
        return drive(self._verbs.graph(self._key))

    async def agraph(self) -> FlowGraph:
        """Async twin of `graph`."""
        return await adrive(self._verbs.graph(self._key))

    def cancel(self) -> bool:
        """Cancel the batch, all children that have not ended, and what follows it; return False if it has ended."""
        return drive(self._verbs.cancel(self._key))

    async def acancel(self) -> bool:
        """Async twin of `cancel`."""
        return await adrive(self._verbs.cancel(self._key))

    def pause(self) -> bool:
        """Pause the children that wait, and those still to be stored; what runs goes on, with its retries."""
        return drive(self._verbs.pause(self._key))

    async def apause(self) -> bool:
        """Async twin of `pause`."""
        return await adrive(self._verbs.pause(self._key))

    def resume(self) -> bool:
        """Let paused children run again; return False if the batch is not paused."""
        return drive(self._verbs.resume(self._key))

    async def aresume(self) -> bool:
        """Async twin of `resume`."""
        return await adrive(self._verbs.resume(self._key))

    def retry_failed(self) -> int:
        """Start the FAILED children over, and return how many. A batch that had failed is live again, and ends anew.

        What followed its failure stays; what its failure canceled is decided again. Canceled children stay canceled.
        """
        return drive(self._verbs.retry_failed(self._key))

    async def aretry_failed(self) -> int:
        """Async twin of `retry_failed`."""
        return await adrive(self._verbs.retry_failed(self._key))

    def __repr__(self) -> str:
        return f"BatchHandle({self._key!r})"
