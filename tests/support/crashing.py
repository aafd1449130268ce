"""Workers that die at a failpoint, and one that finishes what they leave."""

import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from tests.crash.programs.application import make_app
from tests.support.facts import is_sqlite, one, statuses
from tests.support.flow_invariants import check_settled_flows, nothing_is_left
from tests.support.invariants import check_gates, check_invariants
from tests.support.programs import SHORT_LEASES, Program, Programs
from tests.support.waiting import until
from windlass import Call, JobHandle, Windlass

KILLED = -signal.SIGKILL
LIVE = {"PENDING", "RUNNING", "WAITING", "PAUSED"}


class Victim(NamedTuple):
    """A worker that died at a point, its node, and the job that it had to itself."""

    point: str
    worker: Program
    job: JobHandle[Any]


class Stage:
    """One store, an application on it, and the processes of a test."""

    def __init__(self, url: str, programs: Programs, app: Windlass) -> None:
        self.url = url
        self.programs = programs
        self.app = app
        self._retried: set[str] = set()

    def start(self, failpoints: str, queues: Sequence[str] = (), environ: Mapping[str, str] | None = None) -> Program:
        """Start a worker that comes to harm."""
        given = {**SHORT_LEASES, "WINDLASS_FAILPOINTS": failpoints, "TEST_QUEUES": ",".join(queues), **(environ or {})}
        return self.programs.worker(self.url, environ=given)

    def killed_at(self, calls: Mapping[str, Call[Any]]) -> list[Victim]:
        """For each point (perhaps with `@n`) a worker that dies there, and a job of its own in a queue of its own.

        All of them are dead when this returns, and gates count what the dead hold.
        """
        victims = []
        for number, (point, call) in enumerate(calls.items()):
            queue = f"victim-{number}"
            job = call.using(queue=queue).enqueue()
            name, at, nth = point.partition("@")
            victims.append(Victim(name, self.start(f"{name}=kill{at}{nth}", [queue]), job))
        for victim in victims:
            code = victim.worker.exit_code()
            assert code == KILLED, f"it did not die at {victim.point} but ended with {code}:\n{victim.worker.printed}"
        check_gates(self.url)
        return victims

    def finished(self, timeout: float = 300.0, environ: Mapping[str, str] | None = None) -> Program:
        """Have a sound worker do all that is left; then everything must be in order."""
        saviour = self.programs.worker(self.url, environ={**SHORT_LEASES, **(environ or {})})
        assert saviour.node  # before that a signal would just end it
        self.settled(timeout)
        until(lambda: nothing_is_left(self.url), "counts and operations of flows to be carried out", timeout)
        saviour.terminate()
        assert saviour.exit_code() == 0
        self.in_order()
        check_settled_flows(self.url)
        return saviour

    def settled(self, timeout: float = 300.0) -> None:
        """Wait until no job lives any more."""
        until(lambda: not LIVE & set(statuses(self.url)), f"all jobs to end, now {statuses(self.url)}", timeout)

    def in_order(self, purged: int = 0) -> None:
        """Check what must be true while there are no writers."""
        check_invariants(self.url, purged, self._retried)
        if is_sqlite(self.url):
            assert one(self.url, "PRAGMA integrity_check") == "ok"

    def retry(self, job: JobHandle[Any]) -> None:
        """Start a dead letter over."""
        assert self.app.retry(job.id)
        self._retried.add(str(job.id))

    def history(self, job: JobHandle[Any]) -> list[str]:
        """The outcomes of a job's attempts."""
        return [attempt.outcome for attempt in self.app.history(job.id)]


@contextmanager
def stage_on(url: str, programs: Programs) -> Iterator[Stage]:
    """A stage on an empty store."""
    app = make_app(url)
    app.migrate()
    try:
        yield Stage(url, programs, app)
    finally:
        app.close()
