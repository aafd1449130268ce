"""One waiter per process for all handles.

A worker in this process delivers outcomes directly; other processes send a notification (or change the file), upon
which this queries the store once for everything awaited. Without a notification it queries anyway, at growing
intervals: a lost wakeup costs latency only.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from concurrent.futures import Future

from windlass.domain.job import Outcome
from windlass.domain.states import TERMINAL, JobStatus
from windlass.errors import StoreUnavailableError
from windlass.runtime.forks import after_fork
from windlass.runtime.thread_service import ThreadService
from windlass.stores.channels import DONE
from windlass.stores.database import LOST, Database, Wakeups
from windlass.stores.plans import reads

FIRST_PAUSE = 0.01
LAST_PAUSE = 0.25
CLOSED = "the application was closed while this handle waited; the job is not affected, and you can wait again"


class Results(ThreadService):
    """Futures of outcomes, by job."""

    def __init__(self, database: Database) -> None:
        super().__init__("results")
        self._database = database
        self._begin()
        after_fork(self._begin)

    def _begin(self) -> None:
        """Start without waiters; also after a fork, where the parent's waiters do not exist."""
        self._guard = threading.Lock()
        self._awaited: dict[str, list[Future[Outcome]]] = {}
        self._wakeups: Wakeups | None = None
        self._pause = FIRST_PAUSE

    def expect(self, job_id: str) -> Future[Outcome]:
        """Return a future that is set when the job is terminal. Call `forget` to stop waiting."""
        future: Future[Outcome] = Future()
        with self._guard:
            self._awaited.setdefault(job_id, []).append(future)
            self._pause = FIRST_PAUSE
        if self._wakeups is None:
            self._subscribe()
        self.start()
        self.wake()
        return future

    def forget(self, job_id: str, future: Future[Outcome]) -> None:
        """Stop waiting."""
        with self._guard:
            waiting = self._awaited.get(job_id, [])
            if future in waiting:
                waiting.remove(future)
            if not waiting:
                self._awaited.pop(job_id, None)

    @property
    def awaits(self) -> bool:
        """Whether any job is awaited."""
        return bool(self._awaited)

    def deliver(self, outcomes: Iterable[Outcome]) -> None:
        """Set the futures of jobs that succeeded. From any thread.

        A job that ended otherwise may have been retried since its outcome was written, so the store is queried.
        """
        for outcome in outcomes:
            if outcome.status is JobStatus.SUCCEEDED:
                self._set(outcome, self._awaited.get(outcome.job_id, ()))
            elif outcome.job_id in self._awaited:
                self.wake()

    def tick(self) -> float | None:
        """Query the store for everything awaited.

        An answer settles the futures that existed when the query began: a later one may follow a retry.
        """
        with self._guard:
            awaited = {job_id: list(waiting) for job_id, waiting in self._awaited.items()}
        if not awaited:
            return None
        for outcome in self._database.read(reads.outcomes, list(awaited)):
            if outcome.status in TERMINAL:
                self._set(outcome, awaited[outcome.job_id])
        with self._guard:
            pause, self._pause = self._pause, min(self._pause * 2, LAST_PAUSE)
        return pause

    def _set(self, outcome: Outcome, futures: Iterable[Future[Outcome]]) -> None:
        """Set those of a job's futures that are still awaited: each is taken off the list once, by one thread."""
        with self._guard:
            waiting = self._awaited.get(outcome.job_id, [])
            taken = [future for future in tuple(futures) if future in waiting]
            left = [future for future in waiting if future not in taken]
            if left:
                self._awaited[outcome.job_id] = left
            else:
                self._awaited.pop(outcome.job_id, None)
        for future in taken:
            if future.set_running_or_notify_cancel():
                future.set_result(outcome)

    def _subscribe(self) -> None:
        with self._guard:
            if self._wakeups is None:
                self._wakeups = self._database.listen(self._on_notification)

    def _on_notification(self, channel: str, payload: str) -> None:
        if channel == LOST:
            self._fail(StoreUnavailableError(payload, lasting=True))
        elif channel in (DONE, "") and self._awaited:
            self.wake()

    def _fail(self, error: StoreUnavailableError) -> None:
        """Fail all futures: no outcome will be read any more."""
        with self._guard:
            awaited, self._awaited = self._awaited, {}
        for future in [future for waiting in awaited.values() for future in waiting]:
            if future.set_running_or_notify_cancel():
                future.set_exception(error)

    def close(self) -> None:
        """End the thread and the subscription, and fail remaining futures. A later `expect` starts again."""
        self.stop()
        self._fail(StoreUnavailableError(CLOSED))
        if self._wakeups is not None:
            self._wakeups.close()
            self._wakeups = None
