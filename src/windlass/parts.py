"""What an application and its worker are made of: the store, the registry, every extension point with its default."""

from __future__ import annotations

from typing import NamedTuple

from windlass.client.results import Results
from windlass.events.bus import EventBus
from windlass.failure.retry import DefaultRetryPolicy
from windlass.failure.sanitizer import DefaultErrorSanitizer
from windlass.settings import Settings, adaptive_polling
from windlass.spi import (
    Clock,
    Coordinator,
    ErrorSanitizer,
    ExecutorProvider,
    PollingStrategy,
    RetryPolicy,
    Serializer,
)
from windlass.stores.database import DONE, WORK, Database
from windlass.stores.notifier import Notifier
from windlass.stores.open import open_database
from windlass.submission.codec import JsonSerializer
from windlass.submission.registry import Registry


class Store(NamedTuple):
    """A database and the clock it goes by."""

    database: Database
    clock: Clock

    @classmethod
    def open(cls, url: str, clock: Clock) -> Store:
        """From a URL; nothing is connected yet."""
        return cls(open_database(url, clock), clock)


class Replacements(NamedTuple):
    """Extension points the user replaced; None stands for the default."""

    retry_policy: RetryPolicy | None
    sanitizer: ErrorSanitizer | None
    serializer: Serializer | None
    executors: ExecutorProvider | None
    coordinator: Coordinator | None
    polling: PollingStrategy | None


class Parts(NamedTuple):
    """Everything a node needs."""

    database: Database
    clock: Clock
    registry: Registry
    settings: Settings
    serializer: Serializer
    retry_policy: RetryPolicy
    sanitizer: ErrorSanitizer
    polling: PollingStrategy
    executors: ExecutorProvider | None
    """None: coroutines on the node's own loop, the rest on threads."""
    coordinator: Coordinator | None
    """None: the store itself carries wakeups."""
    bus: EventBus
    results: Results
    work: Notifier
    done: Notifier


def make_parts(store: Store, registry: Registry, settings: Settings, given: Replacements) -> Parts:
    """Fill in the defaults."""
    limits, database = settings.jobs, store.database
    sanitizer = given.sanitizer or DefaultErrorSanitizer(
        redact_emails=limits.redact_emails, max_length=limits.max_error_length
    )
    return Parts(
        database=database,
        clock=store.clock,
        registry=registry,
        settings=settings,
        serializer=given.serializer or JsonSerializer(),
        retry_policy=given.retry_policy or DefaultRetryPolicy(),
        sanitizer=sanitizer,
        polling=given.polling or adaptive_polling(settings.poller),
        executors=given.executors,
        coordinator=given.coordinator,
        bus=EventBus(sanitizer.sanitize),
        results=Results(database),
        work=Notifier(database, WORK),
        done=Notifier(database, DONE),
    )
