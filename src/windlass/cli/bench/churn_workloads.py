"""W12: rounds of jobs through the same tables, also while a session holds a snapshot, so that nothing is cleaned up."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

from windlass.cli.bench.checks import Evidence
from windlass.cli.bench.jobs import PAYLOAD, BenchApp, loop_factory
from windlass.cli.bench.latency import EVERY, percentile
from windlass.cli.bench.measure import FUTURE, Load, Measure, drain, fill, migrated
from windlass.cli.bench.processes import Children
from windlass.cli.bench.scratch import Scratch, is_sqlite, rows
from windlass.domain.clock import monotonic

ROUNDS = 10
LAST = 3
"""Number of the last rounds of which the rate is taken."""
STAMPS = 20
"""Jobs after each round, one each 50 ms, whose pick-up is measured."""
SHORTEST = 0.001
"""Seconds that a round takes at least: a small one may have ended before the call that stored it has returned."""
DRAINED = 20_000
"""Jobs of the drain that is measured beside, as in W3."""


def churn(scratch: Scratch, load: Load, *, snapshot: bool = False) -> Measure:
    """Store and drain rounds of jobs with one worker; after each, look how long single jobs wait.

    One more job is due tomorrow, and statistics are taken once, after the first round: the planner then sees one row
    on many pages. The value is the rate of the last rounds, from the commit of a round until its last job has ended.
    """
    size = max(load.jobs // ROUNDS, 1)
    ends: list[int] = [size * (number + 1) + STAMPS * number for number in range(ROUNDS)]
    rates: list[float] = []
    sent: dict[int, float] = {}
    with migrated(scratch) as bench, asyncio.Runner(loop_factory=loop_factory()) as runner:
        bench.noop.using(delay=FUTURE).enqueue(PAYLOAD)
        with _held(bench.app.url, wanted=snapshot), Children(bench.app.url, load.concurrency) as children:
            children.go()
            for number, expected in enumerate(ends):
                fill(bench, bench.noop, size)
                began = monotonic()
                rates.append(size / max(children.wait_for(expected) - began, SHORTEST))
                if number == 0 and not is_sqlite(bench.app.url):
                    rows(bench.app.url, "VACUUM ANALYZE")
                runner.run(_send(bench, sent))
                children.wait_for(expected + STAMPS)
            run = children.finish(ends[-1] + STAMPS)
        runner.run(bench.app.database.aclose_loop())
        problems = load.check(Evidence(bench.app, ends[-1] + STAMPS + 1, run=run, all_of_them=False))
    if run.ended != ends[-1] + STAMPS:
        problems.append(f"jobs ended: expected {ends[-1] + STAMPS}, found {run.ended}")
    waits = sorted(max(run.starts[number] - at, 0.0) * 1000 for number, at in sent.items() if number in run.starts)
    details = {
        "first": rates[0],
        "slowest": min(rates),
        "pickup_p50": percentile(waits, 0.5),
        "pickup_p99": percentile(waits, 0.99),
    }
    return Measure(median(rates[-LAST:]), problems, details)


def drain_once(scratch: Scratch, load: Load) -> float:
    """W3 on a new database, to compare with."""
    return drain(scratch, load._replace(jobs=min(DRAINED, load.jobs))).value


async def _send(bench: BenchApp, sent: dict[int, float]) -> None:
    next_at = monotonic()
    for number in range(len(sent), len(sent) + STAMPS):
        next_at += EVERY
        await asyncio.sleep(next_at - monotonic())
        await bench.stamp.aenqueue(number)
        sent[number] = monotonic()


@contextmanager
def _held(url: str, *, wanted: bool) -> Iterator[None]:
    """Hold a snapshot in another session, as a long report or a dump does."""
    if not wanted or is_sqlite(url):
        yield
        return
    import psycopg

    with psycopg.connect(url) as session:
        session.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        session.execute("SELECT 1 FROM windlass_hot LIMIT 1")
        yield
