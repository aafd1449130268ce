"""The verbs of an application on stored jobs (cancel, pause, resume, retry, replace), and on queues and nodes."""

from __future__ import annotations

from typing import TypeVar, Unpack
from uuid import UUID

from windlass.client import commits
from windlass.client.client import Client
from windlass.client.filters import RETRY_NAMES, JobFilters, checked_filters, checked_limit, with_names
from windlass.domain.identity import FIRST_ID
from windlass.domain.keys import check_queue, check_tags
from windlass.domain.states import JobStatus
from windlass.runtime.verbs import Verb, adrive, drive
from windlass.stores.plans import cluster, found_jobs, limits, moves
from windlass.submission.call import Call
from windlass.submission.declared_names import declared_queues
from windlass.submission.handle import JobHandle
from windlass.submission.submitter import Submitter

R = TypeVar("R")


class Moves(Client):
    """The verbs of an application that move jobs. A verb that may not move a job changes nothing and returns False."""

    _submitter: Submitter

    def cancel(self, job_id: UUID | str) -> bool:
        """Cancel a job; return False if it has ended, or is unknown. A running one is notified, wherever it runs."""
        return drive(self._job_verbs.cancel(job_id))

    async def acancel(self, job_id: UUID | str) -> bool:
        """Async twin of `cancel`."""
        return await adrive(self._job_verbs.cancel(job_id))

    def pause(self, job_id: UUID | str) -> bool:
        """Pause a waiting job or a dead letter until `resume`; return True also if it is paused. Not a running one."""
        return drive(self._job_verbs.pause(job_id))

    async def apause(self, job_id: UUID | str) -> bool:
        """Async twin of `pause`."""
        return await adrive(self._job_verbs.pause(job_id))

    def resume(self, job_id: UUID | str) -> bool:
        """Return a paused job to the state it was paused from; return False if it is not paused."""
        return drive(self._job_verbs.resume(job_id))

    async def aresume(self, job_id: UUID | str) -> bool:
        """Async twin of `resume`."""
        return await adrive(self._job_verbs.resume(job_id))

    def retry(self, job_id: UUID | str) -> bool:
        """Start a dead letter over, with all its retries, due now; return False if the job is not FAILED.

        What its failure canceled of its flow is revived. Raises `DuplicateBusinessKeyError` if another job holds its
        business key by now, and `JobStateError` if it belongs to an archived flow of more than 1,000 jobs.
        """
        return drive(self._job_verbs.retry(job_id))

    async def aretry(self, job_id: UUID | str) -> bool:
        """Async twin of `retry`."""
        return await adrive(self._job_verbs.retry(job_id))

    def retry_many(self, limit: int = 100, *, dry_run: bool = False, **filters: Unpack[JobFilters]) -> int:
        """Start dead letters over, newest first, up to `limit` (1 to 1,000) of those that match the filters of `find`.

        All of them or, if a business key is held by another job, none. A `dry_run` only counts them.
        """
        return drive(self._retry_many(limit, dry_run, filters))

    async def aretry_many(self, limit: int = 100, *, dry_run: bool = False, **filters: Unpack[JobFilters]) -> int:
        """Async twin of `retry_many`."""
        return await adrive(self._retry_many(limit, dry_run, filters))

    def _retry_many(self, limit: int, dry_run: bool, filters: JobFilters) -> Verb[int]:
        checked = checked_filters(filters, "retry_many", RETRY_NAMES)._replace(status=JobStatus.FAILED)
        wanted = (with_names(checked, self.registry.names_of), checked_limit(limit))
        yield from self._authorization.check("retry_many")
        if dry_run:
            return len((yield from self._access.read(found_jobs.failed_ids, *wanted)))
        run_by = (self._access, self._job_verbs.publisher, self._follow_ups)
        moved = yield from commits.revive(*run_by, found_jobs.retry_found, *wanted, self._follow_ups)
        return (yield from self._job_verbs.publish(moved))

    def cancel_by_tag(self, tag: str, *, dry_run: bool = False) -> int:
        """Cancel every job of a tag that has not ended, in batches; return how many. A `dry_run` only counts them."""
        return drive(self._cancel_by_tag(tag, dry_run))

    async def acancel_by_tag(self, tag: str, *, dry_run: bool = False) -> int:
        """Async twin of `cancel_by_tag`."""
        return await adrive(self._cancel_by_tag(tag, dry_run))

    def _cancel_by_tag(self, tag: str, dry_run: bool) -> Verb[int]:
        (name,) = check_tags([tag])
        yield from self._authorization.check("cancel_by_tag")
        count, after = 0, FIRST_ID
        while ids := (yield from self._access.read(found_jobs.tagged, name, after)):
            if dry_run:
                count += len(ids)
            else:
                moved = yield from self._access.run(moves.cancel, ids, self._follow_ups)
                count += yield from self._job_verbs.publish(moved)
            after = ids[-1]
        return count

    def replace(self, job_id: UUID | str, call: Call[R]) -> JobHandle[R]:
        """Store a call in place of a job that has not started, which is CANCELED and names its successor.

        Raises `JobNotFoundError` if there is no such job, `JobStateError` if it runs or has ended.
        """
        return drive(self._submitter.replace(job_id, call))

    async def areplace(self, job_id: UUID | str, call: Call[R]) -> JobHandle[R]:
        """Async twin of `replace`."""
        return await adrive(self._submitter.replace(job_id, call))

    def pause_queue(self, name: str, *, create: bool = False) -> bool:
        """Stop all claims from a queue within about a second; return False if it was paused already.

        Running jobs continue. Raises `UnknownQueueError` if no job was ever in it and none is declared with it, unless
        `create` is True.
        """
        return drive(self._pause_queue(name, create))

    async def apause_queue(self, name: str, *, create: bool = False) -> bool:
        """Async twin of `pause_queue`."""
        return await adrive(self._pause_queue(name, create))

    def _pause_queue(self, name: str, create: bool) -> Verb[bool]:
        wanted = (check_queue(name), None if create else declared_queues(self.registry))
        yield from self._authorization.check("pause_queue")
        return (yield from self._access.run(limits.pause_queue, *wanted))

    def resume_queue(self, name: str) -> bool:
        """Let nodes claim from a queue again, at once; return False if it was not paused.

        Raises `UnknownQueueError` if it is not known.
        """
        return drive(self._resume_queue(name))

    async def aresume_queue(self, name: str) -> bool:
        """Async twin of `resume_queue`."""
        return await adrive(self._resume_queue(name))

    def _resume_queue(self, name: str) -> Verb[bool]:
        queue = check_queue(name)
        yield from self._authorization.check("resume_queue")
        resumed = yield from self._access.run(limits.resume_queue, queue, declared_queues(self.registry))
        self._publisher.wakeups.new_work([(queue, level) for level in range(10)])
        return resumed

    def drain_node(self, node_id: str) -> bool:
        """Ask a node to drain at its next heartbeat; return False if no such node is alive."""
        return drive(self._drain_node(node_id))

    async def adrain_node(self, node_id: str) -> bool:
        """Async twin of `drain_node`."""
        return await adrive(self._drain_node(node_id))

    def _drain_node(self, node_id: str) -> Verb[bool]:
        yield from self._authorization.check("drain_node")
        return (yield from self._access.run(cluster.ask_to_drain, str(node_id)))
