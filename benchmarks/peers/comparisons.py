"""What is compared: our workloads with the same on each peer, each run on a fresh database and checked."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from benchmarks.peers.catalog import BY_KEY, Peer
from benchmarks.peers.reports import differences
from benchmarks.verify import verify
from windlass.cli.bench import latency, measure
from windlass.cli.bench.processes import Children, Drained
from windlass.cli.bench.scratch import Scratch, settle


class Score(NamedTuple):
    value: float
    problems: list[str]


Side = Callable[[Scratch, int], Score]


class Target(NamedTuple):
    text: str
    met: Callable[[float, float], bool]
    """Of our median and the median ratio (ours / theirs)."""


class Workload(NamedTuple):
    key: str
    title: str
    jobs: int
    ours: Side
    theirs: Callable[[Peer], Side]
    unit: str = "jobs/s"

    @property
    def on_sqlite(self) -> bool:
        return self.key == "W8"


class Comparison(NamedTuple):
    workload: Workload
    peer: Peer
    target: Target


# ---------------------------------------------------------------------- ours


def ours(run: Callable[..., measure.Measure], **options: object) -> Side:
    def score(scratch: Scratch, jobs: int) -> Score:
        found = run(scratch, measure.Load(jobs, check=verify), **options)
        return Score(found.value, found.problems)

    return score


# ---------------------------------------------------------------------- theirs
# What the module of a peer on PostgreSQL has: install, enqueue, enqueue_bulk, waiting, send and problems; as a program
# `drain` and `work`, with DRAIN and IDLE as their argument. ENDS: whether `drain` ends by itself, else by SIGTERM.


def enqueue(peer: Peer, callers: int = 1) -> Side:
    def score(scratch: Scratch, jobs: int) -> Score:
        module, each = peer.load(), max(jobs // callers, 1)
        with scratch.fresh() as url:
            module.install(url)
            seconds = module.enqueue(url, each * callers, callers)
            stored = each * callers + callers  # one more of each, to connect
            return Score(each * callers / seconds, check_waiting(peer, module, url, stored))

    return score


def enqueue_bulk(peer: Peer) -> Side:
    def score(scratch: Scratch, jobs: int) -> Score:
        module = peer.load()
        with scratch.fresh() as url:
            module.install(url)
            seconds = module.enqueue_bulk(url, jobs, measure.KEYED_EVERY)
            return Score(jobs / seconds, check_waiting(peer, module, url, jobs + 1))

    return score


def check_waiting(peer: Peer, module: Any, url: str, stored: int) -> list[str]:
    return differences(peer.name, ("waiting", stored, module.waiting(url)))


def drain(peer: Peer, processes: int = 1) -> Side:
    def score(scratch: Scratch, jobs: int) -> Score:
        module = peer.load()
        with scratch.fresh() as url:
            module.install(url)
            module.enqueue_bulk(url, jobs - 1, 0)  # it enqueues one more, to connect
            settle(url)
            run = drained(peer, url, module.DRAIN, jobs, processes, ends=module.ENDS)
            return Score(run.ended / run.seconds, module.problems(url, jobs, run.bodies))

    return score


def pick_up(peer: Peer) -> Side:
    def score(scratch: Scratch, jobs: int) -> Score:
        module, total = peer.load(), jobs + latency.WARM_UP
        with scratch.fresh() as url:
            module.install(url)
            with Children(url, module.IDLE, program=("-m", peer.module, "work")) as children:
                children.go()
                sent = module.send(url, total, latency.EVERY)
                run = children.finish(total)
            waits = latency.waits(sent, run.starts)
            return Score(latency.percentile(waits, 0.5), module.problems(url, total, run.bodies))

    return score


def drain_sqlite(peer: Peer) -> Side:
    def score(scratch: Scratch, jobs: int) -> Score:
        module = peer.load()
        with scratch.fresh() as url:
            module.fill(url, jobs)
            run = drained(peer, url, jobs, jobs, kind=str(module.WORKERS))
            return Score(run.ended / run.seconds, module.problems(url, jobs, run.bodies))

    return score


def drained(
    peer: Peer, url: str, argument: int, jobs: int, processes: int = 1, *, kind: str = "drain", ends: bool = True
) -> Drained:
    with Children(url, argument, count=processes, program=("-m", peer.module, kind), ends=ends) as children:
        children.go()
        return children.finish(jobs)


# ---------------------------------------------------------------------- the table


def at_least(ratio: float) -> Target:
    return Target(f"≥ {ratio:g} x", lambda value, found: found >= ratio)


NOT_SLOWER = Target("≤ 1 x", lambda value, found: found <= 1)
"""Of a time."""

WORKLOADS = {
    workload.key: workload
    for workload in (
        Workload("W1", "enqueue one by one", 2_000, ours(measure.enqueue_each), enqueue),
        Workload(
            *("W1c", "enqueue, 32 callers", 20_000, ours(measure.enqueue_each, callers=measure.CALLERS)),
            partial(enqueue, callers=measure.CALLERS),
        ),
        Workload("W2", "enqueue in bulk", 50_000, ours(measure.enqueue_bulk), enqueue_bulk),
        Workload("W3", "drain, one process", 20_000, ours(measure.drain), drain),
        Workload(
            *("W4", "drain, two processes", 20_000, ours(measure.drain, processes=2)), partial(drain, processes=2)
        ),
        Workload("W5", "idle wakeup, p50", 100, ours(latency.latency), pick_up, unit="ms"),
        Workload("W8", "drain, SQLite", 20_000, ours(measure.drain), drain_sqlite),
    )
}
FIRST = {key: at_least(1) for key in ("W1", "W1c", "W2", "W3", "W4")} | {"W5": NOT_SLOWER}
TARGETS: dict[str, dict[str, Target]] = {
    "pgqueuer": {
        "W1": at_least(1.1),
        "W1c": at_least(1),
        "W2": Target("≥ 40,000/s", lambda value, ratio: value >= 40_000),
        "W3": at_least(1.5),
        "W4": at_least(1.2),
        "W5": Target("≤ 1 ms", lambda value, ratio: value <= 1.0),
    },
    "procrastinate": FIRST,
    "graphile": FIRST | {"W3": at_least(2), "W4": at_least(2)},
    "awa": FIRST,
    "huey": {"W8": at_least(8)},
}
COMPARISONS = tuple(
    Comparison(workload, BY_KEY[peer], targets[key])
    for key, workload in WORKLOADS.items()
    for peer, targets in TARGETS.items()
    if key in targets
)
