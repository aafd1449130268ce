"""P1 … P7: executions of pipelines: many items, quick steps, memory, answers from outside, and what they publish."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from typing import Any, Final

from windlass import ExecutionHandle, ExecutionStatus, Pipeline, Settings, Windlass
from windlass.cli.bench.checks import differences
from windlass.cli.bench.measure import MEGABYTE, Load, Measure, migrated
from windlass.cli.bench.scratch import Scratch
from windlass.domain.clock import monotonic
from windlass.domain.execution import ENDED
from windlass.stores.plans import pipeline_counts

BUFFER: Final = 500
KILOBYTE: Final = 1024
PAYLOAD: Final = "x" * 90
QUICK_STEPS: Final = 5
ELSEWHERE: Final = "bench-elsewhere"
"""A queue that no worker serves."""
PAUSE: Final = 0.01
MOST_ANSWERED: Final = 1_000
WAIT: Final = 3_600.0


async def _same(item: str) -> str:
    return item


def declare_items(app: Windlass, steps: int) -> Pipeline:
    """Declare an expansion, so many steps that do nothing, and a reduction that counts."""
    bench = app.pipeline("bench-items", version=str(steps), buffer=BUFFER)

    @bench.expand
    def items(count: int) -> Iterator[str]:
        return (f"{number:09}{PAYLOAD}" for number in range(count))

    for number in range(steps):
        bench.step(name=f"step_{number}")(_same)

    @bench.reduce
    def ordered(given: Iterable[str]) -> int:
        count = 0
        for count, item in enumerate(given, 1):
            if int(item[:9]) != count - 1:
                return -1
        return count

    return bench


def declare_quick(app: Windlass) -> Pipeline:
    """Declare steps of a single value that do nothing."""
    bench = app.pipeline("bench-quick", version="1")
    for number in range(QUICK_STEPS):
        bench.step(name=f"step_{number}")(_same)
    return bench


def run_items(scratch: Scratch, load: Load, *, steps: int) -> Measure:
    """P1, P2, P4: one expansion, durable steps of every item, and an ordered reduction; items a second."""
    with migrated(scratch) as bench:
        pipeline = declare_items(bench.app, steps)
        with bench.app.worker(concurrency=load.concurrency):
            pipeline.submit(1).result(WAIT)  # connects
            began = monotonic()
            counted = pipeline.submit(load.jobs).result(WAIT)
            seconds = monotonic() - began
        problems = differences(("items in order", load.jobs, counted))
        return Measure(load.jobs / seconds, problems, {"seconds": seconds})


def declare_publication(app: Windlass) -> Pipeline:
    """Declare an expansion whose items are handed over to a pipeline that does not run meanwhile."""
    bench = app.pipeline("bench-publisher", version="1", buffer=BUFFER)

    @bench.expand
    def items(count: int) -> Iterator[str]:
        return (f"{number:09}{PAYLOAD}" for number in range(count))

    bench.publish("bench-items")
    subscriber = app.pipeline("bench-subscriber", version="1", subscribe="bench-items", queue=ELSEWHERE)
    subscriber.step(name="same")(_same)
    return bench


def run_publication(scratch: Scratch, load: Load) -> Measure:
    """P7: the items of one expansion, handed over to a local subscriber, which admits them; items a second."""
    with migrated(scratch) as bench:
        pipeline = declare_publication(bench.app)
        with bench.app.worker(queues=["default"], concurrency=load.concurrency):
            pipeline.submit(1).join(WAIT)  # connects
            began = monotonic()
            pipeline.submit(load.jobs).join(WAIT)
            seconds = monotonic() - began
        (backlog,) = bench.app.publications.backlog()
        admitted = backlog.last_hour.admitted
        opened = sum(one.number for one in bench.app.database.read(pipeline_counts.open_by_definition))
        most = min(load.jobs + 1, pipeline_counts.MOST_COUNTED)
        problems = differences(
            ("hand-offs admitted", load.jobs + 1, admitted),
            ("hand-offs left waiting", 0, backlog.waiting),
            ("executions of the subscriber", most, opened),
        )
        return Measure(load.jobs / seconds, problems, {"seconds": seconds})


def run_quick(scratch: Scratch, load: Load) -> Measure:
    """P3: many executions of five steps that do nothing; executions a second, and commits for each claim."""
    with migrated(scratch) as bench:
        pipeline = declare_quick(bench.app)
        runs = pipeline.submit_many([PAYLOAD] * load.jobs)
        writes = _CommitCount(bench.app)
        with bench.app.worker(concurrency=load.concurrency):
            began = monotonic()  # from its readiness, as where jobs are drained
            while bench.app.database.read(pipeline_counts.open_by_definition):
                threading.Event().wait(PAUSE)
            seconds = monotonic() - began
        succeeded = sum(run.status() is ExecutionStatus.SUCCEEDED for run in runs)
        problems = differences(("executions that succeeded", load.jobs, succeeded))
        details = {"seconds": seconds, "commits_per_claim": writes.count / load.jobs}
        return Measure(load.jobs / seconds, problems, details)


def declare_waits(app: Windlass) -> Pipeline:
    """Declare an expansion, a wait of every item for an answer from outside, and a reduction that counts."""
    bench = app.pipeline("bench-waits", version="1", buffer=BUFFER)

    @bench.expand
    def items(count: int) -> Iterator[int]:
        yield from range(count)

    @bench.await_external(timeout=WAIT, answer=int)
    async def ask(number: int) -> int:
        return number

    @bench.reduce
    def counted(answers: Iterable[int]) -> int:
        count = 0
        for count, answer in enumerate(answers, 1):
            if answer != count - 1:
                return -1
        return count

    return bench


def run_waits(scratch: Scratch, load: Load) -> Measure:
    """P6: every item asks the outside, which answers up to 1,000 at a time; items a second, from submit to result."""
    with migrated(scratch) as bench:
        pipeline = declare_waits(bench.app)
        with bench.app.worker(concurrency=load.concurrency):
            _answer_all(bench.app, pipeline.submit(1))
            began = monotonic()
            run = pipeline.submit(load.jobs)
            answered = _answer_all(bench.app, run)
            seconds = monotonic() - began
        problems = differences(("answers", load.jobs, answered), ("items in order", load.jobs, run.result(WAIT)))
        return Measure(load.jobs / seconds, problems, {"seconds": seconds})


def _answer_all(app: Windlass, run: ExecutionHandle) -> int:
    """Answer what waits, with the number of each item, until an execution has ended; return how many answers."""
    count = 0
    while run.status() not in ENDED:
        waits = app.executions.pending("bench-waits", limit=MOST_ANSWERED).items
        if not waits:
            threading.Event().wait(PAUSE)
            continue
        done = app.executions.complete_many([(wait.token, wait.request) for wait in waits])
        count += sum(not one.duplicate for one in done)
    return count


class _CommitCount:
    """Counts the transactions of a store's plans from its creation on."""

    def __init__(self, app: Windlass) -> None:
        self.count = 0
        database: Any = app.database
        run = database.arun

        async def counted(*args: Any, **kwargs: Any) -> Any:
            self.count += 1
            return await run(*args, **kwargs)

        database.arun = counted


def run_memory(scratch: Scratch, load: Load) -> Measure:
    """P5: the peak memory of a process that runs an execution of many items, and its growth over one of 10,000."""
    with migrated(scratch) as bench:
        peaks = [_peak(bench.app.url, count) for count in (10_000, load.jobs)]
        details = {"small_mb": peaks[0], "growth": peaks[1] / peaks[0] - 1}
        return Measure(peaks[1], [], details)


def _peak(url: str, items: int) -> float:
    code = f"from {__name__} import run_alone; run_alone({url!r}, {items})"
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return int(found.stdout.split()[-1]) / MEGABYTE


def run_alone(url: str, items: int) -> None:
    """Run an execution in this process, and print its peak memory in bytes."""
    import resource

    app = Windlass(url, settings=Settings())
    pipeline = declare_items(app, 1)
    with app.worker():
        assert pipeline.submit(items).result(WAIT) == items
    app.close()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KILOBYTE)
