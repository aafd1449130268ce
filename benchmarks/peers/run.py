"""Windlass beside PgQueuer (PostgreSQL) and Huey (SQLite): the same workloads, in interleaved pairs, in one run.

    make bench-peers                                  # or, with the packages installed:
    python -m benchmarks.peers.run [--pairs 5] [--workload W1,W3] [--jobs N] [--store URL] [--json]

Each pair measures both, one right after the other, who goes first changes with every pair, and each side has a fresh
database. The ratio is the median over the pairs: machines are noisy, a moment of noise meets both sides of a pair.
Without --store a durable PostgreSQL is started for the run. Nothing is installed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from statistics import median
from typing import NamedTuple

HOW_TO_INSTALL = "pip install -e '.[dev,peers]'   (or: make bench-peers, which does it)"

try:
    from benchmarks.peers import huey_peer, pgqueuer_peer
except ImportError as missing:
    sys.exit(f"{missing.name} is not installed; {HOW_TO_INSTALL}")

from benchmarks.verify import verify  # noqa: E402 - after the check above
from windlass.cli.bench import latency, measure  # noqa: E402
from windlass.cli.bench.processes import Children, Drained  # noqa: E402
from windlass.cli.bench.scratch import Scratch, Stores, open_stores, settle  # noqa: E402


class Score(NamedTuple):
    value: float
    problems: list[str]


class Duel(NamedTuple):
    key: str
    title: str
    peer: str
    jobs: int
    ours: Callable[[Scratch, int], Score]
    theirs: Callable[[Scratch, int], Score]
    target: str
    met: Callable[[float, float], bool]
    """Of our median and the median ratio (ours / theirs)."""
    on_sqlite: bool = False
    unit: str = "jobs/s"


def ours(run: Callable[..., measure.Measure], **options: object) -> Callable[[Scratch, int], Score]:
    def score(scratch: Scratch, jobs: int) -> Score:
        found = run(scratch, measure.Load(jobs, check=verify), **options)
        return Score(found.value, found.problems)

    return score


# ---------------------------------------------------------------------- PgQueuer


def pgqueuer_enqueue(scratch: Scratch, jobs: int) -> Score:
    with scratch.fresh() as url:
        pgqueuer_peer.install(url)
        return Score(jobs / pgqueuer_peer.enqueue_one_by_one(url, jobs), [])


def pgqueuer_bulk(scratch: Scratch, jobs: int) -> Score:
    with scratch.fresh() as url:
        pgqueuer_peer.install(url)
        return Score(jobs / pgqueuer_peer.enqueue_bulk(url, jobs, measure.KEYED_EVERY), [])


def pgqueuer_drain(processes: int) -> Callable[[Scratch, int], Score]:
    def score(scratch: Scratch, jobs: int) -> Score:
        with scratch.fresh() as url:
            pgqueuer_peer.install(url)
            pgqueuer_peer.enqueue_bulk(url, jobs - 1, 0)  # it enqueues one more, to connect
            settle(url)
            run = peer("pgqueuer_peer", "drain", url, pgqueuer_peer.BATCH, processes, jobs)
            return Score(run.ended / run.seconds, pgqueuer_peer.problems(url, jobs, run.bodies))

    return score


def pgqueuer_latency(scratch: Scratch, jobs: int) -> Score:
    total = jobs + latency.WARM_UP
    with scratch.fresh() as url:
        pgqueuer_peer.install(url)
        with Children(url, 10, program=program("pgqueuer_peer", "work")) as children:
            children.go()
            sent = pgqueuer_peer.send(url, total, latency.EVERY)
            run = children.finish(total)
        waits = latency.waits(sent, run.starts)
        return Score(latency.percentile(waits, 0.5), pgqueuer_peer.problems(url, total, run.bodies))


# ---------------------------------------------------------------------- Huey


def huey_drain(scratch: Scratch, jobs: int) -> Score:
    with scratch.fresh() as url:
        huey_peer.fill(url, jobs)
        run = peer("huey_peer", str(huey_peer.WORKERS), url, jobs, 1, jobs)
        return Score(run.ended / run.seconds, huey_peer.problems(url, jobs, run.bodies))


def program(module: str, kind: str) -> tuple[str, ...]:
    return ("-m", f"benchmarks.peers.{module}", kind)


def peer(module: str, kind: str, url: str, argument: int, processes: int, jobs: int) -> Drained:
    with Children(url, argument, count=processes, program=program(module, kind), ends=True) as children:
        children.go()
        return children.finish(jobs)


def at_least(ratio: float) -> Callable[[float, float], bool]:
    return lambda value, found: found >= ratio


DUELS = (
    Duel(
        "W1", "enqueue one by one", "PgQueuer", 2_000, ours(measure.enqueue_each), pgqueuer_enqueue,
        "≥ 1.1 x", at_least(1.1),
    ),
    Duel(
        "W2", "enqueue in bulk", "PgQueuer", 50_000, ours(measure.enqueue_bulk), pgqueuer_bulk,
        "≥ 40,000/s", lambda value, ratio: value >= 40_000,
    ),
    Duel(
        "W3", "drain, one process", "PgQueuer", 20_000, ours(measure.drain), pgqueuer_drain(1),
        "≥ 1.5 x", at_least(1.5),
    ),
    Duel(
        "W4", "drain, two processes", "PgQueuer", 20_000, ours(measure.drain, processes=2), pgqueuer_drain(2),
        "≥ 1.2 x", at_least(1.2),
    ),
    Duel(
        "W5", "idle wakeup, p50", "PgQueuer", 100, ours(latency.latency), pgqueuer_latency,
        "≤ 1 ms", lambda value, ratio: value <= 1.0, unit="ms",
    ),
    Duel(
        "W8", "drain, SQLite", "Huey", 20_000, ours(measure.drain), huey_drain,
        "≥ 8 x", at_least(8), on_sqlite=True,
    ),
)  # fmt: skip


# ---------------------------------------------------------------------- pairs


class Outcome(NamedTuple):
    duel: Duel
    jobs: int
    ours: list[float]
    theirs: list[float]
    problems: list[str]

    @property
    def ratios(self) -> list[float]:
        return [mine / other if other else float("inf") for mine, other in zip(self.ours, self.theirs, strict=True)]

    @property
    def met(self) -> bool:
        return self.duel.met(median(self.ours), median(self.ratios))


def fight(duel: Duel, stores: Stores, jobs: int, pairs: int) -> Outcome:
    scratch = stores.sqlite if duel.on_sqlite else stores.main
    outcome = Outcome(duel, jobs, [], [], [])
    for number in range(pairs):
        sides = [(duel.ours, outcome.ours), (duel.theirs, outcome.theirs)]
        for side, values in sides if number % 2 == 0 else sides[::-1]:
            score = side(scratch, jobs)
            values.append(score.value)
            outcome.problems.extend(score.problems)
        print(
            f"{duel.key} pair {number + 1} of {pairs}: windlass {outcome.ours[-1]:,.2f}, "
            f"{duel.peer} {outcome.theirs[-1]:,.2f} {duel.unit}",
            file=sys.stderr,
            flush=True,
        )
    return outcome


def lines(outcomes: list[Outcome]) -> Iterator[list[str]]:
    yield ["", "workload", "jobs", "windlass", "peer", "", "ratio", "of pairs", "target", ""]
    for found in outcomes:
        duel = found.duel
        form = "{:.2f} ms" if duel.unit == "ms" else "{:,.0f}/s"
        spread = f"{min(found.ratios):.2f} … {max(found.ratios):.2f}"
        mine, other = form.format(median(found.ours)), form.format(median(found.theirs))
        ratio, mark = f"{median(found.ratios):.2f}", "✓" if found.met else "✗"
        yield [duel.key, duel.title, f"{found.jobs:,}", mine, other, duel.peer, ratio, spread, duel.target, mark]


def as_json(outcomes: list[Outcome], store: str) -> str:
    results = [
        {
            "workload": found.duel.key,
            "title": found.duel.title,
            "peer": found.duel.peer,
            "jobs": found.jobs,
            "unit": found.duel.unit,
            "windlass": found.ours,
            "theirs": found.theirs,
            "ratio": median(found.ratios),
            "target": found.duel.target,
            "met": found.met,
            "problems": found.problems,
        }
        for found in outcomes
    ]
    return json.dumps({"store": store, "results": results}, indent=2)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--workload", default=",".join(duel.key for duel in DUELS))
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--store")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    names = asked.workload.upper().split(",")
    with open_stores(asked.store) as stores:
        if stores.main is stores.sqlite:
            sys.exit(f"PgQueuer needs PostgreSQL: {stores.note or 'give --store postgresql://…'}")
        store = stores.main.description
        print(f"{store}; {stores.sqlite.description}", file=sys.stderr)
        chosen = [duel for duel in DUELS if duel.key in names]
        outcomes = [fight(duel, stores, asked.jobs or duel.jobs, asked.pairs) for duel in chosen]
    if asked.json:
        print(as_json(outcomes, store))
    else:
        texts = list(lines(outcomes))
        widths = [max(len(text) for text in column) for column in zip(*texts, strict=True)]
        for row in texts:
            print("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())
    problems = [problem for found in outcomes for problem in found.problems]
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
