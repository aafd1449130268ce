"""A handle on a batch: its progress, and the verbs that wait for it and move it with all its children."""

from __future__ import annotations

from typing import Protocol

from windlass.domain.batch import BatchProgress
from windlass.domain.job import SubmittedJob
from windlass.runtime.verbs import Verb, adrive, drive
from windlass.submission.handle import HandleVerbs, StoredHandle


class BatchVerbs(HandleVerbs, Protocol):
    """The verbs on a batch by its id: those on any job, and its own."""

    def progress(self, job_id: str) -> Verb[BatchProgress]:
        """Read the progress."""
        ...

    def retry_failed(self, job_id: str) -> Verb[int]:
        """Start failed children over."""
        ...


class BatchHandle(StoredHandle):
    """The result of submitting a batch: its id, its progress, and methods to wait for it and move it.

    ```python
    handle = app.batch("import users").each(import_user, rows).enqueue()
    handle.progress().percent   # 42.0
    handle.join(timeout=60)     # JobStatus.SUCCEEDED
    ```
    """

    __slots__ = ("_batch_verbs",)

    def __init__(self, submitted: SubmittedJob, verbs: BatchVerbs) -> None:
        super().__init__(submitted, verbs)
        self._batch_verbs = verbs

    def progress(self) -> BatchProgress:
        """Return how many children are stored and have ended."""
        return drive(self._batch_verbs.progress(self._key))

    async def aprogress(self) -> BatchProgress:
        """Async twin of `progress`."""
        return await adrive(self._batch_verbs.progress(self._key))

    def retry_failed(self) -> int:
        """Start the FAILED children over, and return how many. A batch that had failed is live again, and ends anew.

        What followed its failure stays; what its failure canceled is decided again. Canceled children stay canceled.
        """
        return drive(self._batch_verbs.retry_failed(self._key))

    async def aretry_failed(self) -> int:
        """Async twin of `retry_failed`."""
        return await adrive(self._batch_verbs.retry_failed(self._key))
