"""The application object: opens a store from a URL, holds the registry, creates jobs, handles and workers."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

from windlass.app_worker import WorkerHost
from windlass.client.answer_verbs import AnswerVerbs
from windlass.client.batches import Batches
from windlass.client.dead_letters import Alerts, DeadLetters
from windlass.client.execution_verbs import OneExecutionVerbs
from windlass.client.execution_views import ExecutionReader
from windlass.client.executions import Executions
from windlass.client.job_verbs import JobVerbs
from windlass.client.limits import Limits
from windlass.client.moves import Moves
from windlass.client.publications import AppPublications
from windlass.client.reader import Reader
from windlass.client.reads import Reads
from windlass.client.rejects import AppRejects
from windlass.client.signal_verbs import SignalVerbs
from windlass.declarations import Declarations
from windlass.domain.clock import SystemClock
from windlass.errors import ConfigurationError
from windlass.features import features_of, follow_ups_of
from windlass.integrations.dead_letter_providers import dead_letter_provider
from windlass.parts import Parts, Replacements, Store, make_parts, pipeline_parts, shared_location
from windlass.pipelines.app_pipelines import AppPipelines
from windlass.pipelines.declared_pipelines import DeclaredPipelines
from windlass.pipelines.execution_submitter import ExecutionParts, ExecutionSubmitter
from windlass.publisher import Publisher
from windlass.recurring.app_schedules import AppSchedules
from windlass.recurring.declared_schedules import DeclaredSchedules
from windlass.runtime import exits
from windlass.runtime.middleware import check_middleware
from windlass.runtime.verbs import Verb, adrive, drive, off_loop
from windlass.settings import Settings, in_force
from windlass.spi import (
    Authorizer,
    Clock,
    Coordinator,
    ErrorSanitizer,
    ExecutorProvider,
    InstanceResolver,
    InvocationResolver,
    JobMiddleware,
    PollingStrategy,
    ResilienceStrategy,
    RetryPolicy,
    Serializer,
    TargetPolicy,
)
from windlass.stores import migrate
from windlass.stores.access import Access
from windlass.stores.database import Database
from windlass.stores.open import choose_url
from windlass.submission.authorization import Authorization, JobOrId, acting_as
from windlass.submission.batch_encoder import BatchEncoder
from windlass.submission.batch_loader import BatchLoader
from windlass.submission.bound_calls import as_list
from windlass.submission.call import Call, Flow
from windlass.submission.group_commit import GroupCommit
from windlass.submission.handle import JobHandle
from windlass.submission.modules import check_modules
from windlass.submission.registry import Registry
from windlass.submission.submitter import SubmissionParts, Submitter
from windlass.submission.transactional import CallerTransactions

R = TypeVar("R")


class Windlass(WorkerHost, Declarations, AppPipelines, AppSchedules, Reads, Moves, SignalVerbs, Limits, Batches):
    """A durable job engine on the database you have.

    ```python
    app = Windlass("sqlite:///shop.db")

    @app.job(max_retries=3, backoff=Backoff.exponential(1))
    def charge(invoice_id: int) -> str:
        return f"charged {invoice_id}"

    with app.worker():
        print(charge.enqueue(42).result(timeout=10))
    ```

    `allow` names modules whose functions may run without being jobs, `include` modules that declare jobs: a worker
    imports them when it starts. `url` falls back to `WINDLASS_URL`, then to `sqlite:///windlass.db`, with a warning at
    first use. Nothing is opened before it is needed. Each keyword after `settings` replaces one extension point of
    `windlass.spi`.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        allow: Iterable[str] = (),
        include: Iterable[str] = (),
        settings: Settings | None = None,
        retry_policy: RetryPolicy | None = None,
        error_sanitizer: ErrorSanitizer | None = None,
        target_policy: TargetPolicy | None = None,
        serializer: Serializer | None = None,
        resilience: ResilienceStrategy | None = None,
        executors: ExecutorProvider | None = None,
        coordinator: Coordinator | None = None,
        polling: PollingStrategy | None = None,
        invocation_resolver: InvocationResolver | None = None,
        instance_resolver: InstanceResolver | None = None,
        authorizer: Authorizer | None = None,
        middleware: Iterable[JobMiddleware] = (),
        clock: Clock | None = None,
    ) -> None:
        self.settings = in_force(settings)
        self.url, is_default = choose_url(url)
        self.allow = check_modules(allow, "allow")
        store = Store.open(self.url, clock or SystemClock(), is_default=is_default)
        self.registry = Registry(
            self.allow,
            include=include,
            policy=target_policy,
            resolver=invocation_resolver,
            instances=instance_resolver,
            app=self,
            database=shared_location(store.database),
        )
        given = Replacements(
            *(retry_policy, error_sanitizer, serializer, executors, coordinator, polling, resilience, authorizer),
            check_middleware(middleware),
        )
        parts = make_parts(store, self.registry, self.settings, given, DeclaredSchedules(self, lambda: self._submitter))
        self._assemble(self._with_submitters(parts))

    def _with_submitters(self, parts: Parts) -> Parts:
        self._submitter = Submitter(self.registry, parts.serializer, self.settings.jobs, lambda: self._submission_parts)
        submitter = ExecutionSubmitter(lambda: self._execution_parts, self.registry)
        provider = dead_letter_provider(self.settings.pipelines)
        self._pipelines = DeclaredPipelines(self.registry, pipeline_parts(parts), submitter, provider)
        return parts._replace(pipelines=self._pipelines)

    def _assemble(self, parts: Parts) -> None:
        """Assemble the parts that depend on the store and the extension points."""
        encoder = BatchEncoder(self.registry, self._submitter, self._submitter.encoder)
        self._batch_loader = BatchLoader(encoder, lambda: self._submission_parts)
        self._parts, self._declared = parts, parts.declared
        self._bus, self._database, self._results = parts.bus, parts.database, parts.results
        self._access = Access(self._database, migrate.Readiness(self._database, self._opened))
        self._reader = Reader(self.registry, parts.serializer)
        self._clock, self._follow_ups = parts.clock, follow_ups_of(features_of(parts))
        self._publisher = Publisher(self._bus, self._results, parts.clock, parts.local_node)
        read = partial(self._reader.read, self._access)
        self._authorization = Authorization(parts.authorizer, read, parts.clock, parts.sanitizer.sanitize_text)
        published = (self._publisher, self._follow_ups)
        verb_parts = (self._access, self._authorization, *published, self._reader, self._results)
        self._job_verbs = JobVerbs(*verb_parts, self._slots_taken, parts.inline)
        work = parts.work if self._database.notifies and parts.coordinator is None else None
        self._submission_parts = SubmissionParts(
            access=self._access,
            authorization=self._authorization,
            commits=GroupCommit(self._access, work, self._publisher.publish, self._follow_ups),
            caller_transactions=CallerTransactions(self._access, self._follow_ups),
            verbs=self._job_verbs,
            batch_verbs=self._job_verbs,
            local_node=parts.local_node,
            publish=self._publisher.publish,
            follow_ups=self._follow_ups,
            inline=parts.inline,
            known_resources=set(),
        )

        reader = ExecutionReader(self._pipelines, parts.serializer)
        answers = AnswerVerbs(self._job_verbs, self._pipelines, self._submission_parts.commits)
        self._execution_verbs = OneExecutionVerbs(self._job_verbs, reader, answers)
        self._execution_parts = ExecutionParts(self._submission_parts, self._execution_verbs)

    def enqueue_many(self, calls: Iterable[Call[R] | Flow[R]]) -> list[JobHandle[R]]:
        """Store many calls in one transaction, all or none; return handles in order, duplicates marked."""
        return drive(self._submitter.submit(as_list(calls)))

    async def aenqueue_many(self, calls: Iterable[Call[R] | Flow[R]]) -> list[JobHandle[R]]:
        """Async twin of `enqueue_many`."""
        return await adrive(self._submitter.submit(as_list(calls)))

    def handle(self, job_id: UUID | str) -> JobHandle[Any]:
        """Return a handle on a job stored earlier, perhaps by another process."""
        return self._submitter.handle(job_id)

    @property
    def dead_letters(self) -> DeadLetters:
        """Jobs that failed for good: `find`, `get`, `groups`, `redrive`, `purge`."""
        written_by = (self._access, self._publisher, self._follow_ups, self._authorization)
        return DeadLetters(*written_by, self.registry.names_of, self._pipelines.retry_limit)

    @property
    def executions(self) -> Executions:
        """Executions of pipelines: `find`, `get`, `history`, `redrive`."""
        return Executions(self._execution_verbs, self._pipelines)

    @property
    def rejects(self) -> AppRejects:
        """Items of executions that were given up: `find`, `groups`, `redrive`."""
        return AppRejects(self._execution_verbs, self._pipelines.submitter)

    @property
    def publications(self) -> AppPublications:
        """Items that executions pass on to subscribers: `backlog`, `list`, `pause`, `resume`, `retry`, `admit`."""
        return AppPublications(self._execution_verbs, self._pipelines)

    @property
    def alerts(self) -> Alerts:
        """Alerts about jobs that failed for good: `find`."""
        return Alerts(self._access, self._authorization, self.registry.names_of)

    # ------------------------------------------------------------------ principals

    def acting_as(self, principal: object) -> AbstractContextManager[None]:
        """Act for a principal: the authorizer is called with it inside the block, and in tasks started there.

        ```python
        with app.acting_as(request.user):
            app.cancel(job_id)  # NotAuthorizedError unless may(request.user, "cancel", job)
        ```
        It applies to the current context (thread or task), for every application. Without it the principal is None: the
        program itself. Bodies of jobs act as the program itself.
        """
        return acting_as(principal)

    def check_may(self, action: str, job: JobOrId = None) -> None:
        """Raise `NotAuthorizedError` unless the authorizer allows `action`, on a job (or the job of an id) if given.

        For verbs of your own, e.g. of an admin page: `app.check_may("export", job)`.
        """
        return drive(self._authorization.check(action, job))

    async def acheck_may(self, action: str, job: JobOrId = None) -> None:
        """Async twin of `check_may`."""
        return await adrive(self._authorization.check(action, job))

    # ------------------------------------------------------------------ the store

    @property
    def parts(self) -> Parts:
        """The current parts of this application, for tools."""
        return self._parts

    def exchange(self, parts: Parts) -> Parts:
        """Use other parts from now on, as `windlass.testing` does; return the previous ones, which stay open."""
        if self._worker is not None:
            raise ConfigurationError("a worker of this application runs on its current store; stop the worker first")
        before = self._parts
        self._assemble(parts)
        return before

    @property
    def database(self) -> Database:
        """The store, for tools."""
        return self._database

    def migrate(self) -> list[str]:
        """Bring the schema up to date; return the applied migrations. SQLite does this by itself at first use."""
        return drive(self._migrate())

    async def amigrate(self) -> list[str]:
        """Async twin of `migrate`."""
        return await adrive(self._migrate())

    def _migrate(self) -> Verb[list[str]]:
        self._opened()
        return (yield from off_loop(migrate.migrate, self._database))

    def close(self) -> None:
        """Drain the worker, send pending notifications, close every connection, clear caches.

        Idempotent. Using the application afterwards opens it again; a store in memory is then empty.
        """
        return drive(self._close())

    async def aclose(self) -> None:
        """Async twin of `close`."""
        return await adrive(self._close())

    def _close(self) -> Verb[None]:
        yield from self._drain_worker()
        yield from off_loop(self._close_store)

    def _close_store(self) -> None:
        if not self._parts.stays_open:
            self._parts.close()
            self._access.readiness.reset()
            self._submission_parts.known_resources.clear()
        self.registry.clear()
        exits.forget(self.close)

    def _opened(self) -> None:
        """Register the close before the interpreter exits: something is about to be opened, perhaps after a `close`."""
        exits.forget(self.close)
        exits.at_exit(self.close)
