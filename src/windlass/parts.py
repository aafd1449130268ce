"""The parts of an application and its worker: the store, the registry, every extension point with its default."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from windlass.client.results import Results
from windlass.engine.completer import MAX_IN_A_FLUSH
from windlass.engine.outcomes import Written
from windlass.events.bus import EventBus
from windlass.events.types import BatchProgressed
from windlass.failure.guarded_sanitizer import GuardedSanitizer
from windlass.failure.retry import DefaultRetryPolicy
from windlass.failure.sanitizer import DefaultErrorSanitizer
from windlass.feature import Feature
from windlass.flow.progress_calls import ProgressCalls
from windlass.maintenance.permit_keeper import PermitKeeper
from windlass.pipelines.declared_pipelines import DeclaredPipelines
from windlass.pipelines.pipeline_parts import PipelineParts
from windlass.pipelines.relay_bells import RelayBells
from windlass.pipelines.token_keys import TokenKeys
from windlass.recurring.declared_schedules import DeclaredSchedules
from windlass.runtime.global_names import global_name_of
from windlass.runtime.local_node import LocalNode
from windlass.runtime.processes.pool import ProcessOptions, ProcessSettings
from windlass.settings import Settings, adaptive_polling
from windlass.spi import (
    Authorizer,
    Clock,
    Coordinator,
    ErrorSanitizer,
    ExecutorProvider,
    JobMiddleware,
    PollingStrategy,
    ResilienceStrategy,
    RetryPolicy,
    Serializer,
)
from windlass.stores.channels import DONE, WORK
from windlass.stores.database import Database
from windlass.stores.notifier import Notifier
from windlass.stores.open import open_database
from windlass.stores.sqlite.dialect import SqliteDatabase
from windlass.submission.codec import JsonSerializer
from windlass.submission.instances import Instances
from windlass.submission.registry import Registry
from windlass.submission.submitter import Inline
from windlass.submission.target import ImportResolver


class Store(NamedTuple):
    """A database and its clock."""

    database: Database
    clock: Clock

    @classmethod
    def open(cls, url: str, clock: Clock, *, is_default: bool = False) -> Store:
        """Open a store by its URL; nothing is connected yet."""
        return cls(open_database(url, clock, is_default=is_default), clock)


def shared_location(database: Database) -> str | None:
    """Return an id of a database, the same for every application on it; None for a private one in memory."""
    if not isinstance(database, SqliteDatabase):
        return database.description
    return None if database.path == ":memory:" else f"SQLite {Path(database.path).resolve()}"


class Replacements(NamedTuple):
    """Extension points that the user replaced; None means the default."""

    retry_policy: RetryPolicy | None
    sanitizer: ErrorSanitizer | None
    serializer: Serializer | None
    executors: ExecutorProvider | None
    coordinator: Coordinator | None
    polling: PollingStrategy | None
    resilience: ResilienceStrategy | None
    authorizer: Authorizer | None
    middleware: tuple[JobMiddleware, ...] = ()


class Parts(NamedTuple):
    """Everything a node needs."""

    database: Database
    clock: Clock
    registry: Registry
    settings: Settings
    serializer: Serializer
    retry_policy: RetryPolicy
    sanitizer: GuardedSanitizer
    polling: PollingStrategy
    executors: ExecutorProvider | None
    """None: coroutines on the node's loop, other functions on threads."""
    coordinator: Coordinator | None
    """None: the store itself carries wakeups."""
    resilience: ResilienceStrategy | None
    """None: circuits whose state is in the store."""
    bus: EventBus
    results: Results
    work: Notifier
    done: Notifier
    declared: DeclaredSchedules
    """The schedules that the application declares."""
    local_node: LocalNode
    """Wakes the node that runs in this process on these parts."""
    inline: Inline | None = None
    """None: stored jobs wait for a worker."""
    authorizer: Authorizer | None = None
    """None: everything is allowed."""
    middleware: tuple[JobMiddleware, ...] = ()
    """Around every body, the first one outermost."""
    keepers: list[PermitKeeper] = []  # noqa: RUF012 - see `make_parts`
    """What drained nodes keep for bodies that still run."""
    pipelines: DeclaredPipelines | None = None
    """The pipelines that the application declares."""
    features: tuple[Feature, ...] = ()
    """Features in addition to those that every application has."""
    written: Written | None = None
    """Called after each flush with the attempts whose outcome is stored: for tools that count or collect them."""
    largest_flush: int = MAX_IN_A_FLUSH
    """How many outcomes may share a commit: for tools that measure small ones."""
    stays_open: bool = False
    """Whether the store is a test's, and is closed by the test, not by `close` of the application."""

    def on_store(self, store: Store, results: Results) -> Parts:
        """Return the same parts on another store, for this process alone: without a coordinator."""
        database = store.database
        return self._replace(
            database=database,
            clock=store.clock,
            coordinator=None,
            results=results,
            work=Notifier(database, WORK),
            done=Notifier(database, DONE),
            inline=None,
            local_node=LocalNode(None),
            keepers=[],
            stays_open=True,
        )

    def close(self) -> None:
        """Send pending notifications, and close every connection; later use opens again. Idempotent."""
        for keeper in list(self.keepers):
            keeper.close_with(self.database)
        self.results.close()
        self.work.close()
        self.done.close()
        if self.coordinator is not None:
            self.coordinator.close()
        self.database.close()
        self.bus.close()


def make_parts(
    store: Store, registry: Registry, settings: Settings, given: Replacements, declared: DeclaredSchedules
) -> Parts:
    """Fill in the defaults."""
    limits, database = settings.jobs, store.database
    default = DefaultErrorSanitizer(redact_emails=limits.redact_emails, max_length=limits.max_error_length)
    sanitizer = GuardedSanitizer(given.sanitizer, default, limits.max_error_length)
    bus = EventBus(sanitizer.sanitize)
    bus.subscribe(BatchProgressed, ProgressCalls(registry))
    return Parts(
        database=database,
        clock=store.clock,
        registry=registry,
        settings=settings,
        serializer=given.serializer or JsonSerializer(registry.spec_of),
        retry_policy=given.retry_policy or DefaultRetryPolicy(),
        sanitizer=sanitizer,
        polling=given.polling or adaptive_polling(settings.poller),
        executors=given.executors,
        coordinator=given.coordinator,
        resilience=given.resilience,
        bus=bus,
        results=Results(database),
        work=Notifier(database, WORK),
        done=Notifier(database, DONE),
        authorizer=given.authorizer,
        middleware=given.middleware,
        declared=declared,
        local_node=LocalNode(given.coordinator),
        keepers=[],
    )


def pipeline_parts(parts: Parts) -> PipelineParts:
    """Return what executions of pipelines use."""
    settings = parts.settings
    given = (parts.serializer, parts.retry_policy, parts.middleware)
    tokens = TokenKeys(settings.pipelines.token_keys)
    return PipelineParts(*given, settings.pipelines, settings.jobs.timeout, tokens, RelayBells())


def processes_of(parts: Parts) -> ProcessOptions:
    """Return the options of processes that run jobs of this application."""
    node, jobs = parts.settings.node, parts.settings.jobs
    return ProcessOptions(
        node.process_jobs, node.process_memory_bytes, jobs.max_result_bytes, lambda: _process_settings(parts)
    )


def _process_settings(parts: Parts) -> ProcessSettings:
    registry, instances = parts.registry, parts.registry.instances
    plain = type(parts.serializer) is JsonSerializer and isinstance(registry.resolver, ImportResolver)
    provides = instances.provides if isinstance(instances, Instances) else True
    return ProcessSettings(global_name_of(registry.app), not plain or bool(parts.middleware), provides)
