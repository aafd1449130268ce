"""The application object: opens a store from a URL, holds the registry, hands out jobs, handles and workers."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, ParamSpec, TypeVar, Unpack, overload
from uuid import UUID

from windlass.client.jobs import Jobs
from windlass.domain.clock import SystemClock
from windlass.domain.job import Attempt, Job, NewJob
from windlass.domain.options import JobOptions, JobOptionsDict
from windlass.embedded import Worker
from windlass.errors import ConfigurationError, InvalidOptionError
from windlass.events.types import Event
from windlass.parts import Parts, Replacements, Store, make_parts
from windlass.runtime import exits
from windlass.settings import Settings
from windlass.spi import (
    Clock,
    Coordinator,
    ErrorSanitizer,
    ExecutorProvider,
    InstanceResolver,
    InvocationResolver,
    PollingStrategy,
    RetryPolicy,
    Serializer,
    TargetPolicy,
)
from windlass.stores import migrate
from windlass.stores.database import Database
from windlass.submission.call import Call, JobHandle, bind
from windlass.submission.instances import Instances
from windlass.submission.job_function import AsyncJobFunction, JobDecorator, JobFunction, declare
from windlass.submission.registry import Registry
from windlass.submission.signature import CallSpec
from windlass.submission.submit import levels_of

P = ParamSpec("P")
R = TypeVar("R")
E = TypeVar("E", bound=Event)
T = TypeVar("T")

DEFAULT_URL = "sqlite:///windlass.db"


class Windlass:
    """A durable job engine on the database you have.

    ```python
    app = Windlass("sqlite:///shop.db")

    @app.job(max_retries=3, backoff=Backoff.exponential(1))
    def charge(invoice_id: int) -> str:
        return f"charged {invoice_id}"

    with app.worker():
        print(charge.enqueue(42).result(timeout=10))
    ```

    `url` falls back to `WINDLASS_URL`, then to `sqlite:///windlass.db`. Nothing is opened before it is needed. Each
    keyword after `settings` replaces one extension point of `windlass.spi`.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        allow: Iterable[str] = (),
        settings: Settings | None = None,
        retry_policy: RetryPolicy | None = None,
        error_sanitizer: ErrorSanitizer | None = None,
        target_policy: TargetPolicy | None = None,
        serializer: Serializer | None = None,
        executors: ExecutorProvider | None = None,
        coordinator: Coordinator | None = None,
        polling: PollingStrategy | None = None,
        invocation_resolver: InvocationResolver | None = None,
        instance_resolver: InstanceResolver | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.settings = settings if settings is not None else Settings.load()
        self.url = url or os.environ.get("WINDLASS_URL") or DEFAULT_URL
        self.allow = tuple(allow)
        self.registry = Registry(
            self.allow, policy=target_policy, resolver=invocation_resolver, instances=instance_resolver
        )
        self._policy_given = target_policy is not None
        self._coordinator = coordinator
        self._worker: Worker | None = None
        self._parts = make_parts(
            Store.open(self.url, clock or SystemClock()),
            self.registry,
            self.settings,
            Replacements(retry_policy, error_sanitizer, serializer, executors, coordinator, polling),
        )
        self._bus, self._database, self._results = self._parts.bus, self._parts.database, self._parts.results
        self._readiness = migrate.Readiness(self._database)
        work = self._parts.work if self._database.notifies and coordinator is None else None
        limits, serializer = self.settings.jobs, self._parts.serializer
        self._jobs = Jobs(self._database, self._readiness, self.registry, serializer, limits, self._results, work)
        exits.at_exit(self.close)

    @overload
    def job(  # type: ignore[overload-overlap]  # coroutine functions first, or they would be typed to return coroutines
        self, function: Callable[P, Coroutine[Any, Any, R]], /
    ) -> AsyncJobFunction[P, R]: ...
    @overload
    def job(self, function: Callable[P, R], /) -> JobFunction[P, R]: ...
    @overload
    def job(self, **options: Unpack[JobOptionsDict]) -> JobDecorator: ...
    def job(self, function: Any = None, /, **options: Any) -> Any:  # type: ignore[misc]  # mypy and Unpack
        """Make a function or method a job, bare or with options: `@app.job` or `@app.job(max_retries=3)`."""
        checked = JobOptions.make(**options)

        def decorate(function: Any) -> Any:
            return declare(function, registry=self.registry, submitter=self, options=checked)

        return decorate if function is None else decorate(function)

    def provide(self, what: object, factory: Callable[[], object] | None = None) -> None:
        """Give the object that methods of its class run on, or a class and a factory that makes it when needed."""
        if not isinstance(self.registry.instances, Instances):
            raise ConfigurationError(
                "provide() belongs to the default instance resolver; this app was given another one"
            )
        if factory is None:
            self.registry.instances.provide(what)
        else:
            self.registry.instances.provide(what, factory)

    def on(self, kind: type[E]) -> Callable[[Callable[[E], T]], Callable[[E], T]]:
        """Call the decorated function with every event of a kind, after its commit: `@app.on(JobDeadLettered)`."""
        return self._bus.on(kind)

    # ------------------------------------------------------------------ submitting

    @overload
    def bind(self, function: Callable[..., Coroutine[Any, Any, R]], /, *args: Any, **kwargs: Any) -> Call[R]: ...
    @overload
    def bind(self, function: Callable[..., R], /, *args: Any, **kwargs: Any) -> Call[R]: ...
    def bind(self, function: Any, /, *args: Any, **kwargs: Any) -> Call[Any]:
        """A call of a job, or of any function that `allow` admits, as a value: `app.bind(shop.tax.recalculate, 7)`."""
        if isinstance(function, JobFunction | AsyncJobFunction):
            return function.bind(*args, **kwargs)
        return bind(function, args, kwargs, registry=self.registry, submitter=self, options=JobOptions())

    def enqueue_many(self, calls: Iterable[Call[R]]) -> list[JobHandle[R]]:
        """Store many calls in one transaction; handles come in order, duplicates marked. All or none."""
        return self.submit(_as_list(calls))

    async def aenqueue_many(self, calls: Iterable[Call[R]]) -> list[JobHandle[R]]:
        """Async twin of `enqueue_many`."""
        return await self.asubmit(_as_list(calls))

    def submit(self, calls: Sequence[Call[Any]]) -> list[JobHandle[Any]]:
        """Store calls, all or none; what `enqueue` of a call does."""
        rows = self._jobs.rows(calls)
        if not rows:
            return []
        placed = self._jobs.submit(rows)
        self._wake(rows)
        return self._jobs.handles(calls, placed)

    async def asubmit(self, calls: Sequence[Call[Any]]) -> list[JobHandle[Any]]:
        """Async twin of `submit`."""
        rows = self._jobs.rows(calls)
        if not rows:
            return []
        placed = await self._jobs.asubmit(rows)
        self._wake(rows)
        return self._jobs.handles(calls, placed)

    def _wake(self, rows: Sequence[NewJob]) -> None:
        """The worker of this process, and whatever coordinates others in place of the store."""
        worker, coordinator = self._worker, self._coordinator
        if worker is None and coordinator is None:
            return
        work = levels_of(rows)
        if worker is not None:
            worker.wake(work)
        if coordinator is not None:
            for queue, level in work:
                coordinator.notify_new_work(queue, level)

    # ------------------------------------------------------------------ following

    def handle(self, job_id: UUID | str) -> JobHandle[Any]:
        """A handle on a job stored earlier, perhaps by another process."""
        return self._jobs.handle(job_id)

    def follow(self, job_id: UUID | str, spec: CallSpec) -> JobHandle[Any]:
        """`handle` with a known return type; what `charge.handle(id)` does."""
        return self._jobs.handle(job_id, spec)

    def get(self, job_id: UUID | str) -> Job:
        """One job as it is now; `JobNotFoundError` if there is none."""
        return self._jobs.get(job_id)

    async def aget(self, job_id: UUID | str) -> Job:
        """Async twin of `get`."""
        return await self._jobs.aget(job_id)

    def history(self, job_id: UUID | str) -> list[Attempt]:
        """Every attempt of a job, oldest first; `JobNotFoundError` if there is none."""
        return self._jobs.history(job_id)

    async def ahistory(self, job_id: UUID | str) -> list[Attempt]:
        """Async twin of `history`."""
        return await self._jobs.ahistory(job_id)

    # ------------------------------------------------------------------ running

    def worker(self, *, concurrency: int | None = None, queues: Iterable[str] | None = None) -> Worker:
        """An embedded node: `with app.worker():` or `async with app.worker():`. One at a time per application."""
        slots = self.settings.node.concurrency if concurrency is None else concurrency
        return Worker(self.check_startable, slots, queues, self._entered)

    def run_worker(self, *, concurrency: int | None = None, queues: Iterable[str] | None = None) -> int:
        """Run a node until SIGTERM or SIGINT, drain, and answer the exit code: 0 clean, 3 forced."""
        return self.worker(concurrency=concurrency, queues=queues).run()

    def _entered(self, worker: Worker | None) -> None:
        if worker is not None and self._worker is not None:
            raise ConfigurationError(
                "this application already runs a worker in this process; "
                "give it more concurrency, or start another process"
            )
        self._worker = worker

    def check_startable(self) -> Parts:
        """Find out what would keep a worker from starting; gives what it needs. Not on a loop: this may migrate."""
        if not (self.registry.targets or self.allow or self._policy_given):
            raise ConfigurationError(
                "a worker with nothing allowed would run nothing: decorate functions with @app.job, "
                'or allow modules, e.g. Windlass(..., allow=["shop.tasks"])'
            )
        self._readiness.ensure()
        return self._parts

    # ------------------------------------------------------------------ the store

    @property
    def database(self) -> Database:
        """The store, for tools."""
        return self._database

    def migrate(self) -> list[str]:
        """Bring the schema up to date; answers what was applied. SQLite does this by itself at first use."""
        return migrate.migrate(self._database)

    async def amigrate(self) -> list[str]:
        """Async twin of `migrate`."""
        return await asyncio.to_thread(self.migrate)

    def close(self) -> None:
        """Drain a worker entered by `with`, send what is owed, close every connection, forget what was resolved.

        Idempotent.
        """
        if self._worker is not None:
            self._worker.drain()
        self._results.close()
        self._parts.work.close()
        self._parts.done.close()
        if self._coordinator is not None:
            self._coordinator.close()
        self._database.close()
        self._bus.close()
        self.registry.clear()
        exits.forget(self.close)

    async def aclose(self) -> None:
        """Async twin of `close`."""
        await asyncio.to_thread(self.close)


def _as_list(calls: Iterable[Call[R]]) -> list[Call[R]]:
    if isinstance(calls, Call):
        raise InvalidOptionError(
            "enqueue_many takes a list of calls, got a single one; write [call], or call.enqueue()"
        )
    return list(calls)
