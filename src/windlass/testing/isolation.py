"""A private store and clock for a test: an application uses them for a while; its jobs and subscribers stay."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from datetime import timedelta
from typing import overload

from windlass.app import Windlass
from windlass.client.results import Results
from windlass.domain.clock import VirtualClock
from windlass.domain.job import Outcome
from windlass.errors import ConfigurationError, WindlassError
from windlass.parts import Store
from windlass.stores.database import Database

IN_MEMORY = "sqlite://"

_under_test: list[Windlass] = []
"""Applications under test, the latest last."""


class NoWorkerError(WindlassError):
    """Code under test waits for a job that nothing in this test will run."""


@contextmanager
def isolated(app: Windlass, *, url: str = IN_MEMORY, clock: VirtualClock | None = None) -> Iterator[Windlass]:
    """Make an application use a new store in memory and a stopped clock inside the block.

    ```python
    from shop import app, charge

    def test_an_order_is_charged():
        with isolated(app):
            place_order(42)                # code of yours that calls charge.enqueue(42)
            assert_enqueued(charge, 42)
            drain(app)
    ```

    What `app` was made with stays (settings, policies, listeners), except a coordinator: no other process is notified.
    `url` names another store, which is migrated and should be empty. Waiting for a job that nothing in the test runs
    is a `NoWorkerError`, on any store.
    """
    store = Store.open(url, clock or VirtualClock())
    staged = app.parts.on_store(store, _Results(store.database, app))
    before = app.exchange(staged)
    _under_test.append(app)
    try:
        if not store.database.migrates_itself:
            app.migrate()
        yield app
    finally:
        _under_test.remove(app)
        app.exchange(before)
        staged.close()


def app_under_test() -> Windlass:
    """Return the application under test if there is exactly one."""
    apps = {id(app): app for app in _under_test}
    if len(apps) != 1:
        found = f"{len(apps)} applications are" if apps else "no application is"
        raise ConfigurationError(
            f"{found} being tested just now, so say which one is meant: pass it, or enter `with isolated(app):`"
        )
    return _under_test[-1]


def is_under_test(app: Windlass) -> bool:
    """Return whether an application uses a private store of a test."""
    return any(known is app for known in _under_test)


@overload
def advance(seconds: float | timedelta, /) -> None: ...
@overload
def advance(app: Windlass, seconds: float | timedelta, /) -> None: ...
def advance(first: Windlass | float | timedelta, second: float | timedelta | None = None, /) -> None:
    """Move a test's clock: `advance(60)` for the application being tested, `advance(app, 60)` for a certain one.

    Jobs with a delay, a due time or a backoff come due by it; `drain` runs them. In inline mode they run at once.
    """
    if isinstance(first, Windlass):
        if second is None:
            raise TypeError("advance(app, seconds): the seconds are missing")
        app, seconds = first, second
    else:
        app, seconds = app_under_test(), first
    clock = app.parts.clock
    if not isinstance(clock, VirtualClock):
        raise ConfigurationError(
            f"this application goes by a {type(clock).__name__}, which cannot be moved; "
            "enter `with isolated(app):`, or make the application with clock=VirtualClock()"
        )
    clock.advance(seconds)
    if app.parts.inline is not None:
        app.parts.inline.run()


class _Results(Results):
    """Raises at once for a job that will not end, where production would wait for a worker."""

    def __init__(self, database: Database, app: Windlass) -> None:
        super().__init__(database)
        self._app = app

    def expect(self, job_id: str) -> Future[Outcome]:
        """Return a future that is only used if the job has not ended."""
        if self._app.has_worker:
            return super().expect(job_id)
        future: Future[Outcome] = Future()
        future.set_exception(
            NoWorkerError(
                f"job {job_id} is not over, and nothing in this test runs it meanwhile: call drain(app) before "
                "asking for its result (advance() first, if it is not due), or use `with app.worker():`"
            )
        )
        return future
