"""What an application can do to jobs that are stored: cancel, pause, resume, retry, replace; to queues, and nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar, Unpack
from uuid import UUID

from windlass.client.access import Access
from windlass.client.aftermath import Aftermath
from windlass.client.authorization import Authorization
from windlass.client.filters import RETRY_NAMES, JobFilters, checked_filters, checked_limit, with_names
from windlass.client.jobs import Jobs
from windlass.domain.identity import parse_job_id
from windlass.domain.job import NewJob
from windlass.domain.keys import check_queue, check_tags
from windlass.domain.states import JobStatus
from windlass.stores.plans import cluster, limits, moves, search
from windlass.submission.call import Call, JobHandle
from windlass.submission.declared_names import declared_queues
from windlass.submission.registry import Registry

R = TypeVar("R")

FIRST_ID = "00000000-0000-0000-0000-000000000000"


class Steering:
    """The steering half of an application. A verb that finds nothing it may move changes nothing and says so."""

    _access: Access
    _aftermath: Aftermath
    _authorization: Authorization
    _jobs: Jobs
    registry: Registry

    def cancel(self, job_id: UUID | str) -> bool:
        """End a job that has not ended; False if it has, or is unknown. A running one is told, wherever it runs."""
        key = parse_job_id(job_id)
        self._authorization.check("cancel", key)
        return self._aftermath.canceled(self._access.run(moves.cancel, [key])) > 0

    async def acancel(self, job_id: UUID | str) -> bool:
        """Async twin of `cancel`."""
        key = parse_job_id(job_id)
        await self._authorization.acheck("cancel", key)
        return self._aftermath.canceled(await self._access.arun(moves.cancel, [key])) > 0

    def pause(self, job_id: UUID | str) -> bool:
        """Hold a job that waits, or a dead letter, until `resume`; True also if it is paused. Not a running one."""
        key = parse_job_id(job_id)
        self._authorization.check("pause", key)
        return self._aftermath.paused(self._access.run(moves.pause, [key])) > 0

    async def apause(self, job_id: UUID | str) -> bool:
        """Async twin of `pause`."""
        key = parse_job_id(job_id)
        await self._authorization.acheck("pause", key)
        return self._aftermath.paused(await self._access.arun(moves.pause, [key])) > 0

    def resume(self, job_id: UUID | str) -> bool:
        """Put a paused job back to the state it was paused from; False if it is not paused."""
        key = parse_job_id(job_id)
        self._authorization.check("resume", key)
        return self._aftermath.resumed(self._access.run(moves.resume, [key])) > 0

    async def aresume(self, job_id: UUID | str) -> bool:
        """Async twin of `resume`."""
        key = parse_job_id(job_id)
        await self._authorization.acheck("resume", key)
        return self._aftermath.resumed(await self._access.arun(moves.resume, [key])) > 0

    def retry(self, job_id: UUID | str) -> bool:
        """Start a dead letter over, with all its retries, due now; False if the job is not FAILED.

        `DuplicateBusinessKeyError` if somebody else holds its business key by now.
        """
        key = parse_job_id(job_id)
        self._authorization.check("retry", key)
        return self._aftermath.retried(self._access.run(moves.retry, [key])) > 0

    async def aretry(self, job_id: UUID | str) -> bool:
        """Async twin of `retry`."""
        key = parse_job_id(job_id)
        await self._authorization.acheck("retry", key)
        return self._aftermath.retried(await self._access.arun(moves.retry, [key])) > 0

    def retry_many(self, limit: int = 100, *, dry_run: bool = False, **filters: Unpack[JobFilters]) -> int:
        """Start dead letters over, newest first, up to `limit` (1 to 1,000) of those that fit the filters of `find`.

        All of them or, if a business key is held by another job, none. A `dry_run` only counts them.
        """
        asked = self._failed(filters)
        self._authorization.check("retry_many")
        if dry_run:
            return len(self._access.read(moves.failed_ids, asked, checked_limit(limit)))
        return self._aftermath.retried(self._access.run(moves.retry_found, asked, checked_limit(limit)))

    async def aretry_many(self, limit: int = 100, *, dry_run: bool = False, **filters: Unpack[JobFilters]) -> int:
        """Async twin of `retry_many`."""
        asked = self._failed(filters)
        await self._authorization.acheck("retry_many")
        if dry_run:
            return len(await self._access.aread(moves.failed_ids, asked, checked_limit(limit)))
        return self._aftermath.retried(await self._access.arun(moves.retry_found, asked, checked_limit(limit)))

    def _failed(self, filters: JobFilters) -> search.Filters:
        checked = checked_filters(filters, "retry_many", RETRY_NAMES)._replace(status=JobStatus.FAILED)
        return with_names(checked, self.registry.names_of)

    def cancel_by_tag(self, tag: str, *, dry_run: bool = False) -> int:
        """Cancel every job of a tag that has not ended, in batches; answers how many. A `dry_run` only counts them."""
        (name,) = check_tags([tag])
        self._authorization.check("cancel_by_tag")
        count, after = 0, FIRST_ID
        while ids := self._access.read(moves.tagged, name, after):
            count += len(ids) if dry_run else self._aftermath.canceled(self._access.run(moves.cancel, ids))
            after = ids[-1]
        return count

    async def acancel_by_tag(self, tag: str, *, dry_run: bool = False) -> int:
        """Async twin of `cancel_by_tag`."""
        (name,) = check_tags([tag])
        await self._authorization.acheck("cancel_by_tag")
        count, after = 0, FIRST_ID
        while ids := await self._access.aread(moves.tagged, name, after):
            count += len(ids) if dry_run else self._aftermath.canceled(await self._access.arun(moves.cancel, ids))
            after = ids[-1]
        return count

    def replace(self, job_id: UUID | str, call: Call[R]) -> JobHandle[R]:
        """Store a call in place of a job that has not started, which is CANCELED and names its successor.

        `JobNotFoundError` if there is no such job, `JobStateError` if it runs or has ended.
        """
        row = self._jobs.own_row(call)
        self._authorization.check("replace", job_id)
        self._authorization.check_calls([call])
        replaced = self._access.run(moves.replace, parse_job_id(job_id), row)
        return self._successor(call, row, replaced)

    async def areplace(self, job_id: UUID | str, call: Call[R]) -> JobHandle[R]:
        """Async twin of `replace`."""
        row = self._jobs.own_row(call)
        await self._authorization.acheck("replace", job_id)
        await self._authorization.acheck_calls([call])
        replaced = await self._access.arun(moves.replace, parse_job_id(job_id), row)
        return self._successor(call, row, replaced)

    def pause_queue(self, name: str, *, create: bool = False) -> bool:
        """Have no node claim from a queue, within about a second; what runs goes on. False if it was paused already.

        `UnknownQueueError` if no job was ever in it and none is declared with it, unless `create` says it is meant.
        """
        queue = check_queue(name)
        self._authorization.check("pause_queue")
        return self._access.run(limits.pause_queue, queue, None if create else declared_queues(self.registry))

    async def apause_queue(self, name: str, *, create: bool = False) -> bool:
        """Async twin of `pause_queue`."""
        queue = check_queue(name)
        await self._authorization.acheck("pause_queue")
        return await self._access.arun(limits.pause_queue, queue, None if create else declared_queues(self.registry))

    def resume_queue(self, name: str) -> bool:
        """Let nodes claim from a queue again, at once; False if it was not paused, `UnknownQueueError` if not known."""
        queue = check_queue(name)
        self._authorization.check("resume_queue")
        resumed = self._access.run(limits.resume_queue, queue, declared_queues(self.registry))
        self._aftermath.wake(_all_levels(name))
        return resumed

    async def aresume_queue(self, name: str) -> bool:
        """Async twin of `resume_queue`."""
        queue = check_queue(name)
        await self._authorization.acheck("resume_queue")
        resumed = await self._access.arun(limits.resume_queue, queue, declared_queues(self.registry))
        self._aftermath.wake(_all_levels(name))
        return resumed

    def drain_node(self, node_id: str) -> bool:
        """Have a node leave at its next heartbeat, after what it runs; False if no such node is alive."""
        self._authorization.check("drain_node")
        return self._access.run(cluster.ask_to_drain, str(node_id))

    async def adrain_node(self, node_id: str) -> bool:
        """Async twin of `drain_node`."""
        await self._authorization.acheck("drain_node")
        return await self._access.arun(cluster.ask_to_drain, str(node_id))

    def _successor(self, call: Call[R], row: NewJob, replaced: moves.Replaced) -> JobHandle[R]:
        self._aftermath.canceled(replaced.old, "superseded")
        self._aftermath.wake([(row.queue, row.priority)])
        return self._jobs.handles([call], [replaced.new])[0]


def _all_levels(queue: str) -> Sequence[tuple[str, int]]:
    return [(queue, level) for level in range(10)]
