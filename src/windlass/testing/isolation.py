"""A store and a clock of the test's own: an application works on them for a while, its jobs and listeners stay."""

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

_on_stage: list[Windlass] = []
"""Applications that are being tested, the latest last."""


class NobodyRunsJobsError(WindlassError):
    """Code under test waits for a job that nothing in this test will run."""


@contextmanager
def isolated(app: Windlass, *, url: str = IN_MEMORY, clock: VirtualClock | None = None) -> Iterator[Windlass]:
    """Have an application work on a new store in memory, by a clock that stands still, until the block is left.

    ```python
    from shop import app, charge

    def test_an_order_is_charged():
        with isolated(app):
            place_order(42)                # code of yours that calls charge.enqueue(42)
            assert_enqueued(charge, 42)
            drain(app)
    ```

    What `app` was made with stays (settings, policies, listeners), but for a coordinator: nobody else is told.
    `url` names another store, which is migrated and should be empty. Waiting for a job that nothing in the test runs
    is a `NobodyRunsJobsError`, on any store.
    """
    store = Store.open(url, clock or VirtualClock())
    staged = app.parts.on_store(store, _Results(store.database, app))
    before = app.exchange(staged)
    _on_stage.append(app)
    try:
        if not store.database.migrates_itself:
            app.migrate()
        yield app
    finally:
        _on_stage.remove(app)
        app.exchange(before)
        staged.close()


def app_on_stage() -> Windlass:
    """The application that is being tested, where there is no doubt which."""
    apps = {id(app): app for app in _on_stage}
    if len(apps) != 1:
        found = f"{len(apps)} applications are" if apps else "no application is"
        raise ConfigurationError(
            f"{found} being tested just now, so say which one is meant: pass it, or enter `with isolated(app):`"
        )
    return _on_stage[-1]


def is_on_stage(app: Windlass) -> bool:
    """Whether an application works on a store of a test's own."""
    return any(known is app for known in _on_stage)


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
        app, seconds = app_on_stage(), first
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
    """Says at once that a job will not end, where production would wait for a worker."""

    def __init__(self, database: Database, app: Windlass) -> None:
        super().__init__(database)
        self._app = app

    def expect(self, job_id: str) -> Future[Outcome]:
        """A future that is only asked if the job is not over yet."""
        if self._app.has_worker:
            return super().expect(job_id)
        future: Future[Outcome] = Future()
        future.set_exception(
            NobodyRunsJobsError(
                f"job {job_id} is not over, and nothing in this test runs it meanwhile: call drain(app) before "
                "asking for its result (advance() first, if it is not due), or use `with app.worker():`"
            )
        )
        return future
