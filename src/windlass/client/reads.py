"""The verbs of an application that read: jobs, their history, nodes, queues, and health."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, TypeVar, Unpack
from uuid import UUID

from windlass.client.client import Client
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
from windlass.client.views import node_of, queue_of
from windlass.domain.clock import SystemClock
from windlass.domain.cluster import Node, Queue
from windlass.domain.explanation import Explanation
from windlass.domain.flow_graph import FlowGraph
from windlass.domain.job import Attempt, Job
from windlass.domain.progress import LogLine
from windlass.runtime.verbs import Verb, adrive, drive, off_loop
from windlass.stores.database import PlanFunction
from windlass.stores.plans import cluster, queues, search

T = TypeVar("T")
Row = TypeVar("Row", bound=Sequence[Any])


class Reads(Client):
    """The verbs of an application that change nothing."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} on {self._access.database.description}>"

    def get(self, job_id: UUID | str) -> Job:
        """Return one job as it is now; `JobNotFoundError` if there is none."""
        return drive(self._job_verbs.get(job_id))

    async def aget(self, job_id: UUID | str) -> Job:
        """Async twin of `get`."""
        return await adrive(self._job_verbs.get(job_id))

    def history(self, job_id: UUID | str) -> list[Attempt]:
        """Return every attempt of a job, oldest first; `JobNotFoundError` if there is none."""
        return drive(self._job_verbs.history(job_id))

    async def ahistory(self, job_id: UUID | str) -> list[Attempt]:
        """Async twin of `history`."""
        return await adrive(self._job_verbs.history(job_id))

    def explain(self, job_id: UUID | str) -> Explanation:
        """Explain why a job is not running: the first thing that holds it back; `JobNotFoundError` if there is none.

        `app.explain(handle.id).message` → `queue billing is paused; resume the queue to run its jobs`
        """
        return drive(self._job_verbs.explain(job_id))

    async def aexplain(self, job_id: UUID | str) -> Explanation:
        """Async twin of `explain`."""
        return await adrive(self._job_verbs.explain(job_id))

    def graph(self, job_id: UUID | str) -> FlowGraph:
        """Return the whole flow of a job: its jobs, what follows what, its groups; `JobNotFoundError` if there is none.

        Every job of a flow gives the same graph; one outside of flows is alone in its graph. Only the job asked for is
        checked by the authorizer, for the action `get`.

        ```python
        graph = app.graph(job_id)
        print([job.target for job in graph.nodes if job.status is JobStatus.FAILED])
        ```
        """
        return drive(self._job_verbs.graph(job_id))

    async def agraph(self, job_id: UUID | str) -> FlowGraph:
        """Async twin of `graph`."""
        return await adrive(self._job_verbs.graph(job_id))

    def log_lines(self, job_id: UUID | str, after: LogLine | str | None = None, limit: int = 1000) -> list[LogLine]:
        """Return log lines kept with a job, oldest attempt first; `JobNotFoundError` if there is no such job.

        To follow a job, call it again with the last line you have (or its `position`) as `after`:

        ```python
        lines = app.log_lines(job_id)
        more = app.log_lines(job_id, after=lines[-1] if lines else None)
        ```
        """
        return drive(self._job_verbs.log_lines(job_id, after, limit))

    async def alog_lines(
        self, job_id: UUID | str, after: LogLine | str | None = None, limit: int = 1000
    ) -> list[LogLine]:
        """Async twin of `log_lines`."""
        return await adrive(self._job_verbs.log_lines(job_id, after, limit))

    def find(self, *, cursor: str | None = None, limit: int = 100, **filters: Unpack[FindFilters]) -> Page[Job]:
        """Return jobs that match all filters, newest first: `for job in app.find(status="FAILED", queue="billing")`.

        Filters: `status, queue, tag, target, business_key, created_after, created_before`. A page has up to `limit`
        jobs and reads a bounded number of rows: where few of many jobs match, it may hold fewer, even none, and still
        have a `next_cursor`. There is nothing more when that is None.
        """
        return drive(self._find(cursor, limit, filters))

    async def afind(self, *, cursor: str | None = None, limit: int = 100, **filters: Unpack[FindFilters]) -> Page[Job]:
        """Async twin of `find`."""
        return await adrive(self._find(cursor, limit, filters))

    def _find(self, cursor: str | None, limit: int, filters: FindFilters) -> Verb[Page[Job]]:
        named = with_names(checked_filters(filters, "find", FIND_NAMES), self.registry.names_of)
        checked = named._replace(ids_have_times=isinstance(self._clock, SystemClock))
        wanted = (checked, parse_cursor(cursor), checked_limit(limit))
        yield from self._authorization.check("find")
        stored, next_cursor = yield from self._access.read(search.find, *wanted)
        visible = yield from self._authorization.visible([self._reader.job(job) for job in stored])
        return Page(visible, next_cursor)

    def nodes(self) -> list[Node]:
        """Return every registered node, oldest first; `alive` says whether it holds its lease."""
        return drive(self._all("nodes", cluster.nodes, node_of))

    async def anodes(self) -> list[Node]:
        """Async twin of `nodes`."""
        return await adrive(self._all("nodes", cluster.nodes, node_of))

    def queues(self) -> list[Queue]:
        """Return every queue that has been used, by name, with its waiting and running jobs and the last hour's counts.

        Waiting jobs are counted up to 10,000.
        """
        return drive(self._all("queues", queues.depths, queue_of))

    async def aqueues(self) -> list[Queue]:
        """Async twin of `queues`."""
        return await adrive(self._all("queues", queues.depths, queue_of))

    def _all(self, action: str, plan: PlanFunction[[], Sequence[Row]], view: Callable[[Row], T]) -> Verb[list[T]]:
        yield from self._authorization.check(action)
        return [view(row) for row in (yield from self._access.read(plan))]

    def health(self, max_age: float | timedelta | None = None) -> Health:
        """Check whether the store answers, its schema is current, and a worker is alive: `app.health(max_age=30)`.

        With `max_age` a worker counts only if its last heartbeat is younger than so many seconds, by the store's clock.
        A sweeper that has not passed for a minute, although there is a worker to do it, is reported too. So are errors
        that workers keep meeting although the store answers: statements that it refuses. A store that does not answer
        is reported, not raised.
        """
        return drive(self._health(max_age))

    async def ahealth(self, max_age: float | timedelta | None = None) -> Health:
        """Async twin of `health`."""
        return await adrive(self._health(max_age))

    def _health(self, max_age: float | timedelta | None) -> Verb[Health]:
        return off_loop(examine, self._access.database, max_age, self.settings.node.sweep_interval)
