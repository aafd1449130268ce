"""Batches: the verbs of an application that make them and find them again."""

from __future__ import annotations

from typing import Unpack
from uuid import UUID

from windlass.client.client import Client
from windlass.domain.identity import parse_job_id
from windlass.domain.job import SubmittedJob
from windlass.domain.options import JobOptions, JobOptionsDict
from windlass.submission.batch import Batch, make_batch
from windlass.submission.batch_handle import BatchHandle
from windlass.submission.batch_loader import BatchLoader


class Batches(Client):
    """The verbs of an application about batches."""

    _batch_loader: BatchLoader

    def batch(self, name: str, **options: Unpack[JobOptionsDict]) -> Batch:
        """Return a batch: many children of one job, counted together, and what follows when all have ended.

        ```python
        app.batch("import users").each(import_user, rows).then_on_batch_success(notify.bind()).enqueue()
        ```

        The options are those of its own job: `queue`, `priority`, `tags`, `params`, `correlation_id`,
        `idempotency_key`, `business_key`, `on_conflict`. Those of children belong to their job.
        """
        return make_batch(name, JobOptions.make(**options), self._batch_loader)

    def batch_handle(self, batch_id: UUID | str) -> BatchHandle:
        """Return a handle on a batch stored earlier, perhaps by another process."""
        return BatchHandle(SubmittedJob(parse_job_id(batch_id)), self._job_verbs)
