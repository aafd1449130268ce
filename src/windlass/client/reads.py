"""What an application can be asked: jobs, their history, nodes, queues, and whether all is well."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Unpack
from uuid import UUID

from windlass.client.access import Access
from windlass.client.aftermath import Aftermath
from windlass.client.authorization import Authorization
from windlass.client.filters import (
    FIND_NAMES,
    FindFilters,
    Page,
    checked_filters,
    checked_limit,
    parse_cursor,
    with_names,
)
from windlass.client.health import Health, examine
from windlass.client.reader import Reader
from windlass.client.views import attempt_of, node_of, queue_of
from windlass.domain.clock import SystemClock
from windlass.domain.cluster import Node, Queue
from windlass.domain.explanation import Explanation, Surroundings, WaitingJob, explain
from windlass.domain.identity import parse_job_id
from windlass.domain.job import Attempt, Job
from windlass.errors import JobNotFoundError
from windlass.settings import Settings
from windlass.stores.plans import cluster, explanations, queues, reads, search


class Looking:
    """The reading half of an application."""

    settings: Settings
    _access: Access
    _reader: Reader
    _aftermath: Aftermath
    _authorization: Authorization

    def __repr__(self) -> str:
        return f"<{type(self).__name__} on {self._access.database.description}>"

    def get(self, job_id: UUID | str) -> Job:
        """One job as it is now; `JobNotFoundError` if there is none."""
        key = parse_job_id(job_id)
        self._authorization.check("get", key)
        return self._job(key, self._access.read(reads.get, key))

    async def aget(self, job_id: UUID | str) -> Job:
        """Async twin of `get`."""
        key = parse_job_id(job_id)
        await self._authorization.acheck("get", key)
        return self._job(key, await self._access.aread(reads.get, key))

    def history(self, job_id: UUID | str) -> list[Attempt]:
        """Every attempt of a job, oldest first; `JobNotFoundError` if there is none."""
        key = parse_job_id(job_id)
        self._authorization.check("history", key)
        return _attempts(key, self._access.read(reads.history, key))

    async def ahistory(self, job_id: UUID | str) -> list[Attempt]:
        """Async twin of `history`."""
        key = parse_job_id(job_id)
        await self._authorization.acheck("history", key)
        return _attempts(key, await self._access.aread(reads.history, key))

    def explain(self, job_id: UUID | str) -> Explanation:
        """Why a job is not running: the first thing that keeps it; `JobNotFoundError` if there is none.

        `app.explain(handle.id).message` → `queue billing is paused; resume the queue to let its jobs go on`
        """
        key = parse_job_id(job_id)
        self._authorization.check("explain", key)
        return _explained(key, self._access.read(explanations.waiting_job, key))

    async def aexplain(self, job_id: UUID | str) -> Explanation:
        """Async twin of `explain`."""
        key = parse_job_id(job_id)
        await self._authorization.acheck("explain", key)
        return _explained(key, await self._access.aread(explanations.waiting_job, key))

    def find(self, *, cursor: str | None = None, limit: int = 100, **filters: Unpack[FindFilters]) -> Page[Job]:
        """Jobs that fit every filter given, newest first: `for job in app.find(status="FAILED", queue="billing")`.

        Filters: `status, queue, tag, target, business_key, created_after, created_before`. A page has up to `limit`
        jobs and reads a bounded number of rows: where few of many jobs fit, it may hold fewer, even none, and still
        have a `next_cursor`. There is nothing more when that is None.
        """
        asked = (self._asked(filters), parse_cursor(cursor), checked_limit(limit))
        self._authorization.check("find")
        stored, next_cursor = self._access.read(search.find, *asked)
        return Page(self._authorization.visible(map(self._reader.job, stored)), next_cursor)

    async def afind(self, *, cursor: str | None = None, limit: int = 100, **filters: Unpack[FindFilters]) -> Page[Job]:
        """Async twin of `find`."""
        asked = (self._asked(filters), parse_cursor(cursor), checked_limit(limit))
        await self._authorization.acheck("find")
        stored, next_cursor = await self._access.aread(search.find, *asked)
        return Page(await self._authorization.avisible(map(self._reader.job, stored)), next_cursor)

    def nodes(self) -> list[Node]:
        """Every node that has not signed off, oldest first; `alive` tells whether it holds its lease."""
        self._authorization.check("nodes")
        return [node_of(row) for row in self._access.read(cluster.nodes)]

    async def anodes(self) -> list[Node]:
        """Async twin of `nodes`."""
        await self._authorization.acheck("nodes")
        return [node_of(row) for row in await self._access.aread(cluster.nodes)]

    def queues(self) -> list[Queue]:
        """Every queue that was ever used, by name, with what waits in it, what runs, and what ended in the last hour.

        What waits is counted up to 10,000.
        """
        self._authorization.check("queues")
        return [queue_of(row) for row in self._access.read(queues.depths)]

    async def aqueues(self) -> list[Queue]:
        """Async twin of `queues`."""
        await self._authorization.acheck("queues")
        return [queue_of(row) for row in await self._access.aread(queues.depths)]

    def health(self, max_age: float | timedelta | None = None) -> Health:
        """Whether the store answers, its schema is current, and a worker is alive: `app.health(max_age=30)`.

        With `max_age` a worker counts only if its last heartbeat is younger than so many seconds, by the store's clock.
        A sweeper that has not passed for a minute, although there is a worker to do it, is told too.
        So are errors that workers keep meeting though the store answers: statements that it refuses.
        A store that does not answer is told, not raised.
        """
        return examine(self._access.database, max_age, self.settings.node.sweep_interval)

    async def ahealth(self, max_age: float | timedelta | None = None) -> Health:
        """Async twin of `health`."""
        return await asyncio.to_thread(self.health, max_age)

    def _asked(self, filters: FindFilters) -> search.Filters:
        checked = with_names(checked_filters(filters, "find", FIND_NAMES), self._reader.registry.names_of)
        return checked._replace(ids_tell_time=isinstance(self._aftermath.clock, SystemClock))

    def _found(self, job_id: str) -> Job | None:
        """`get` that asks nobody's leave, and finds nothing rather than raise."""
        stored = self._access.read(reads.get, job_id)
        return None if stored is None else self._reader.job(stored)

    def _job(self, job_id: str, stored: reads.StoredJob | None) -> Job:
        if stored is None:
            raise JobNotFoundError(UUID(job_id))
        return self._reader.job(stored)


def _attempts(job_id: str, rows: list[Sequence[Any]] | None) -> list[Attempt]:
    if rows is None:
        raise JobNotFoundError(UUID(job_id))
    return [attempt_of(row) for row in rows]


def _explained(key: str, found: tuple[WaitingJob, Surroundings] | None) -> Explanation:
    if found is None:
        raise JobNotFoundError(UUID(key))
    return explain(*found)
