"""The worker of an application: created by `worker()`, at most one at a time, drained when the application closes."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from functools import partial

from windlass.errors import ConfigurationError, WouldBlockLoopError
from windlass.parts import Parts, shared_location
from windlass.runtime.verbs import Verb
from windlass.settings import Settings
from windlass.store_wait import DEFAULT_WAIT, StoreWait
from windlass.stores.access import Access
from windlass.submission.modules import PrefixPolicy, nothing_to_run
from windlass.submission.registry import Registry
from windlass.worker import Worker


class WorkerHost:
    """The part of an application that runs jobs."""

    allow: tuple[str, ...]
    settings: Settings
    registry: Registry
    _access: Access
    _parts: Parts
    _worker: Worker | None = None

    def worker(
        self,
        *,
        concurrency: int | None = None,
        queues: Iterable[str] | None = None,
        drain_timeout: float | timedelta | None = None,
    ) -> Worker:
        """Return an embedded worker: `with app.worker():` or `async with app.worker():`. One at a time per application.

        `drain_timeout` is how long running jobs may continue when it drains; default: the setting `node.drain_timeout`.
        """
        slots = self.settings.node.concurrency if concurrency is None else concurrency
        return Worker(self.check_startable, slots, queues, self._entered, drain_timeout)

    def run_worker(
        self,
        *,
        concurrency: int | None = None,
        queues: Iterable[str] | None = None,
        drain_timeout: float | timedelta | None = None,
        burst: bool = False,
        wait: float | timedelta = DEFAULT_WAIT,
    ) -> int:
        """Run a worker until SIGTERM or SIGINT, drain, and return the exit code: 0 clean, 3 forced.

        With `burst` it also stops by itself, once nothing is due any more that it could run. A store that is not
        reachable at the start is waited for, up to `wait` seconds. The exit code is 1 if its SQLite file was deleted or
        replaced.
        """
        worker = self.worker(concurrency=concurrency, queues=queues, drain_timeout=drain_timeout)
        return worker.run(burst=burst, store_wait=StoreWait(wait))

    def _entered(self, worker: Worker | None) -> None:
        if worker is not None and self._worker is not None:
            raise ConfigurationError(
                "this application already runs a worker in this process; "
                "give it more concurrency, or start another process"
            )
        self._worker = worker

    def _slots_taken(self) -> int | None:
        node = None if self._worker is None else self._worker.node
        return None if node is None else node.slots.slots_taken

    @property
    def has_worker(self) -> bool:
        """Whether a worker of this application runs in this process."""
        return self._worker is not None

    def check_startable(self) -> Parts:
        """Check what would keep a worker from starting; return the parts it needs. Not on a loop: this may migrate."""
        self.registry.import_included()
        if self._parts.pipelines is not None:
            self._parts.pipelines.register_all()
            self._parts.pipelines.check_sinks(in_memory=shared_location(self._parts.database) is None)
        if not (self.registry.targets or self.allow) and isinstance(self.registry.policy, PrefixPolicy):
            raise ConfigurationError(nothing_to_run(self.registry.app))
        self._access.readiness.ensure()
        return self._parts

    def _drain_worker(self) -> Verb[None]:
        if self._worker is not None:
            yield partial(_drain, self._worker), self._worker.adrain, ()


def _drain(worker: Worker) -> None:
    try:
        worker.drain()
    except WouldBlockLoopError:
        raise WouldBlockLoopError(
            "close() would block the event loop that the worker runs on; write `await app.aclose()` instead"
        ) from None
