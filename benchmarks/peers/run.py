"""Windlass beside other queues, on PostgreSQL and SQLite: the same workloads, in interleaved pairs, in one run.

    make bench-peers                                  # or, with the packages installed:
    python -m benchmarks.peers.run [--peer pgqueuer,huey] [--workload W1,W3] [--pairs 5] [--jobs N] [--store URL]

Each pair measures both, one right after the other, who goes first changes with every pair, and each side has a fresh
database. The ratio is the median over the pairs: machines are noisy, a moment of noise meets both sides of a pair.
Without --store a durable PostgreSQL is started for the run. Nothing is installed: a peer that is not installed is named
and left out, and refused if --peer asks for it.

Exit codes: 0 if every job of both sides ran exactly once, else 1; missed targets and lost comparisons are shown, no
error.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from benchmarks.peers import catalog
from benchmarks.peers.catalog import PEERS, Peer
from benchmarks.peers.comparisons import COMPARISONS, WORKLOADS, Comparison
from windlass.cli.bench.scratch import Stores, open_stores

COLUMNS = ("", "workload", "jobs", "windlass", "peer", "", "ratio", "of pairs", "windlass is", "target", "")


class Outcome(NamedTuple):
    comparison: Comparison
    jobs: int
    ours: list[float]
    theirs: list[float]
    problems: list[str]

    @property
    def ratios(self) -> list[float]:
        return [mine / other if other else float("inf") for mine, other in zip(self.ours, self.theirs, strict=True)]

    @property
    def ahead(self) -> bool:
        """Whether we are at least as fast; of a time, less is faster."""
        ratio = median(self.ratios)
        return ratio <= 1 if self.comparison.workload.unit == "ms" else ratio >= 1

    @property
    def met(self) -> bool:
        return self.comparison.target.met(median(self.ours), median(self.ratios))


def measure_pairs(comparison: Comparison, stores: Stores, jobs: int, pairs: int) -> Outcome:
    workload, peer, _ = comparison
    scratch = stores.sqlite if workload.on_sqlite else stores.main
    outcome = Outcome(comparison, jobs, [], [], [])
    for number in range(pairs):
        sides = [(workload.ours, outcome.ours), (workload.theirs(peer), outcome.theirs)]
        for side, values in sides if number % 2 == 0 else sides[::-1]:
            score = side(scratch, jobs)
            values.append(score.value)
            outcome.problems.extend(score.problems)
        print(
            f"{workload.key} pair {number + 1} of {pairs}: windlass {outcome.ours[-1]:,.2f}, "
            f"{peer.name} {outcome.theirs[-1]:,.2f} {workload.unit}",
            file=sys.stderr,
            flush=True,
        )
    return outcome


# ---------------------------------------------------------------------- what is shown


def lines(outcomes: Sequence[Outcome]) -> Iterator[Sequence[str]]:
    yield COLUMNS
    for found in outcomes:
        workload, peer, target = found.comparison
        form = "{:.2f} ms" if workload.unit == "ms" else "{:,.0f}/s"
        spread = f"{min(found.ratios):.2f} … {max(found.ratios):.2f}"
        mine, other = form.format(median(found.ours)), form.format(median(found.theirs))
        ratio, place, mark = (
            f"{median(found.ratios):.2f}",
            "ahead" if found.ahead else "BEHIND",
            "✓" if found.met else "✗",
        )
        counted = (workload.key, workload.title, f"{found.jobs:,}", mine, other, peer.name)
        yield (*counted, ratio, spread, place, target.text, mark)


def show(outcomes: Sequence[Outcome]) -> None:
    texts = list(lines(outcomes))
    widths = [max(len(text) for text in column) for column in zip(*texts, strict=True)]
    for row in texts:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())


def as_json(outcomes: Sequence[Outcome], store: str, missing: Mapping[str, str]) -> str:
    results = [
        {
            "workload": found.comparison.workload.key,
            "title": found.comparison.workload.title,
            "peer": found.comparison.peer.name,
            "jobs": found.jobs,
            "unit": found.comparison.workload.unit,
            "windlass": found.ours,
            "theirs": found.theirs,
            "ratio": median(found.ratios),
            "ahead": found.ahead,
            "target": found.comparison.target.text,
            "met": found.met,
            "problems": found.problems,
        }
        for found in outcomes
    ]
    return json.dumps({"store": store, "missing": missing, "results": results}, indent=2)


def report_missing(missing: Mapping[str, str]) -> None:
    for name, reason in missing.items():
        print(f"not measured: {name}: {reason}", file=sys.stderr)


# ---------------------------------------------------------------------- the command


def chosen_workloads(text: str) -> list[str]:
    by_name = {key.upper(): key for key in WORKLOADS}
    names = [name.strip() for name in text.upper().split(",")]
    if set(names) - set(by_name):
        raise argparse.ArgumentTypeError(f"expected some of {', '.join(WORKLOADS)}, got {text!r}")
    return [key for name, key in by_name.items() if name in names]


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.peers.run",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--peer", type=catalog.chosen, help=f"some of {', '.join(catalog.BY_KEY)}; all that are installed"
    )
    parser.add_argument("--workload", "-w", type=chosen_workloads, default=list(WORKLOADS))
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--store")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args(arguments)
    asked.missing = catalog.all_missing(asked.peer or list(PEERS))
    if asked.peer and asked.missing:
        parser.error("\n".join(f"{name}: {reason}" for name, reason in asked.missing.items()))
    asked.comparisons = chosen(asked.peer or PEERS, asked.workload, asked.missing)
    if not asked.comparisons:
        report_missing(asked.missing)
        parser.error("nothing to compare: no chosen peer that is installed has one of the chosen workloads")
    return asked


def chosen(peers: Sequence[Peer], workloads: Sequence[str], missing: Mapping[str, str]) -> list[Comparison]:
    return [
        one
        for one in COMPARISONS
        if one.peer in peers and one.peer.name not in missing and one.workload.key in workloads
    ]


def main() -> int:
    asked = parse()
    report_missing(asked.missing)
    with open_stores(asked.store) as stores:
        if stores.main is stores.sqlite and not all(one.workload.on_sqlite for one in asked.comparisons):
            sys.exit(f"the peers need PostgreSQL: {stores.note or 'give --store postgresql://…'}")
        store = stores.main.description
        print(f"{store}; {stores.sqlite.description}", file=sys.stderr)
        outcomes = [
            measure_pairs(one, stores, asked.jobs or one.workload.jobs, asked.pairs) for one in asked.comparisons
        ]
    if asked.json:
        print(as_json(outcomes, store, asked.missing))
    else:
        show(outcomes)
        report_missing(asked.missing)  # again, below the table that lacks them
    problems = [problem for found in outcomes for problem in found.problems]
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
