"""Workers of pipelines that die at a failpoint, and one that finishes what they leave."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple
from uuid import UUID

from tests.crash.programs.pipelines import Order, Pipelines, pipelines_app
from tests.support.crashing import KILLED
from tests.support.facts import is_sqlite, literal, one, rows
from tests.support.pipeline_invariants import check_executions
from tests.support.programs import SHORT_LEASES, Program, Programs
from tests.support.waiting import until
from windlass.pipelines.execution_handle import ExecutionHandle

LONG = 90.0


class DeadWorker(NamedTuple):
    """A worker that died at a point, and the execution that it had to itself."""

    point: str
    worker: Program
    run: ExecutionHandle
    order: Order


class PipelineStage:
    """One store, applications on it, and the processes of a test."""

    def __init__(self, url: str, programs: Programs) -> None:
        self.url = url
        self.programs = programs
        self._open: dict[str, Pipelines] = {}
        self.app.migrate()

    def pipelines(self, queue: str = "default") -> Pipelines:
        """The pipelines of this process; those of a queue are in an application of their own."""
        if queue not in self._open:
            self._open[queue] = pipelines_app(self.url, queue)
        return self._open[queue]

    @property
    def app(self) -> Any:
        return self.pipelines().app

    def close(self) -> None:
        for pipelines in self._open.values():
            pipelines.app.close()

    def submit(self, pipeline: str, order: Order, queue: str = "default") -> ExecutionHandle:
        return self.pipelines(queue).named[pipeline].submit(order)

    def start(self, failpoints: str = "", queue: str = "", environ: Mapping[str, str] | None = None) -> Program:
        """Start a worker, perhaps one that comes to harm."""
        given = {**SHORT_LEASES, "WINDLASS_FAILPOINTS": failpoints, "TEST_QUEUE": queue, **(environ or {})}
        return self.programs.start("pipeline_worker", self.url, environ=given)

    def killed_at(self, points: Mapping[str, tuple[str, Order]]) -> list[DeadWorker]:
        """For each point (perhaps with `@n`) a worker that dies there, and an execution in a queue of its own."""
        found = []
        for number, (point, (pipeline, order)) in enumerate(points.items()):
            queue = f"victim-{number}"
            run = self.submit(pipeline, order, queue)
            name, at, nth = point.partition("@")
            found.append(DeadWorker(name, self.start(f"{name}=kill{at}{nth}", queue), run, order))
        for dead in found:
            code = dead.worker.exit_code()
            assert code == KILLED, f"it did not die at {dead.point} but ended with {code}:\n{dead.worker.printed}"
        return found

    def finished(self, environ: Mapping[str, str] | None = None) -> Program:
        """Have a sound worker do all that is left; then everything must be in order."""
        worker = self.start(environ=environ)
        assert worker.node  # before that a signal would just end it
        self.settled()
        worker.terminate()
        assert worker.exit_code() == 0
        self.in_order()
        return worker

    def settled(self) -> None:
        """Wait until no job lives any more."""
        until(lambda: one(self.url, "SELECT count(*) FROM windlass_hot") == 0, "all executions to end", LONG)

    def in_order(self) -> None:
        """Check what must be true while there are no writers."""
        check_executions(self.url)
        if is_sqlite(self.url):
            assert one(self.url, "PRAGMA integrity_check") == "ok"

    def log(self, run: ExecutionHandle) -> list[tuple[str, int]]:
        """Kind and step of each transition of an execution."""
        question = "SELECT kind, step FROM windlass_transition WHERE execution_id = {} ORDER BY version"
        return [(kind, step) for kind, step in rows(self.url, question.format(literal(self.url, run.id)))]

    def value(self, run: ExecutionHandle, column: str) -> Any:
        """A column of an execution."""
        return one(self.url, f"SELECT {column} FROM windlass_execution WHERE id = {literal(self.url, run.id)}")

    def hot(self, job: UUID, column: str) -> Any:
        """A column of a live job."""
        return one(self.url, f"SELECT {column} FROM windlass_hot WHERE id = {literal(self.url, job)}")

    def items(self, run: ExecutionHandle) -> dict[str, tuple[int, int]]:
        """Status and attempt of each item, by its path."""
        question = f"SELECT path, status, attempt FROM windlass_item WHERE execution_id = {literal(self.url, run.id)}"
        return {path: (status, attempt) for path, status, attempt in rows(self.url, question)}

    def calls(self, step: str, name: str) -> list[tuple[str, str]]:
        """Transition and effect keys of the calls of a step with a value, in order."""
        found = [call.split(",") for call in self.programs.ran(step)]
        return [(transition, effect) for called, transition, effect in found if called == name]

    def counts(self, step: str) -> Counter[str]:
        """How often a step was called with each value."""
        return Counter(call.split(",")[0] for call in self.programs.ran(step))

    def starts(self, step: str, name: str) -> list[int]:
        """When a step was called with a value, in microseconds."""
        found = [call.split(",") for call in self.programs.ran(f"{step}-at")]
        return [int(at) for called, at in found if called == name]


@contextmanager
def pipeline_stage_on(url: str, programs: Programs) -> Iterator[PipelineStage]:
    """A stage on an empty store."""
    stage = PipelineStage(url, programs)
    try:
        yield stage
    finally:
        stage.close()
