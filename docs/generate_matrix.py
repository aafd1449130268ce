"""Writes the crash matrix into docs/explain/guarantees.md: `make docs-matrix`, or `python -m docs.generate_matrix`.

What happens at each row is written here by hand; the tests of a row are those whose docstrings name it ("P9.C3: …").
"""

import re
import sys
from collections.abc import Mapping
from typing import NamedTuple

from docs.generate_rules import ROOT, NamesByFile, named_by_tests
from docs.generated_parts import write_page

PAGE = ROOT / "docs" / "explain" / "guarantees.md"
_ROW = re.compile(r"\bP9\.(C\d+b?)\b")


class Row(NamedTuple):
    """One line of the matrix."""

    crash: str
    afterwards: str
    twice: str


ROWS: Mapping[str, Row] = {
    "C0": Row(
        "who enqueues dies before / after the commit",
        "nothing is stored, not even a key / the job runs without its caller",
        "never",
    ),
    "C1": Row(
        "the body has run, its outcome is not committed",
        "RUNNING until the lease is over, then another node runs it again; the attempt does not count",
        "**yes**, the body",
    ),
    "C2": Row(
        "the outcome is committed, nobody was told",
        "what follows (callbacks) was committed with it and starts anyway; the body is not called again",
        "never",
    ),
    "C3": Row(
        "a failed attempt, before / after its retry is committed",
        "the attempt is not spent, it runs again / spent once, and not run before it is due",
        "before: yes, the body",
    ),
    "C4": Row(
        "the body has done something outside, its outcome is not committed",
        "it is done again, under the same `effect_key` and with a higher `fence`",
        "**yes**, the effect: use the key",
    ),
    "C5": Row(
        "a worker dies with jobs in its hands",
        "when its lease is over exactly one other node takes each of them; a claim that was not committed never was",
        "yes, what had begun",
    ),
    "C5b": Row(
        "a worker stands still past its lease, then goes on",
        "its late outcome is refused, the other node's stands; it notices and goes on under a new name",
        "yes, what had begun",
    ),
    "C6": Row(
        "a worker dies in the middle of a failure for good",
        "state, error, history, keys and callback are all there, or none of them is",
        "before the commit: yes, the body",
    ),
    "C8": Row(
        "the connection breaks while COMMIT is under way",
        "whoever wrote looks whether it happened before it writes again",
        "never",
    ),
    "C9": Row(
        "a job that always kills its process",
        "is given out again three times, then FAILED as `worker_lost`; other work goes on",
        "yes, up to its crash budget",
    ),
    "C10": Row(
        "who recovers a lost node's jobs, archives, purges or sweeps dies at it; several do it at once",
        "another node goes on when the lease is over: each job is brought back once, and charged for one crash; "
        "is archived, purged or given up once, with all that belongs to it",
        "never",
    ),
}


def named_by_row() -> dict[str, NamesByFile]:
    """For each row the files and the names of its tests."""
    return dict(named_by_tests(ROOT, _ROW))


def table(found: Mapping[str, NamesByFile]) -> str:
    """The matrix as Markdown."""
    lines = ["| # | what happens | afterwards | runs twice? | tests |", "|---|---|---|---|---|"]
    for name, row in ROWS.items():
        links = [f"[{_words(test)}](../../{file})" for file, tests in found.get(name, {}).items() for test in tests]
        lines.append(f"| {name} | {row.crash} | {row.afterwards} | {row.twice} | {'; '.join(links)} |")
    return "\n".join(lines)


def _words(test: str) -> str:
    return test.removeprefix("test_").replace("_", " ")


def parts() -> dict[str, str]:
    """What to write into the page."""
    return {"matrix": table(named_by_row())}


def main() -> None:
    """Write the page."""
    changed = write_page(PAGE, parts())
    sys.stdout.write(f"{PAGE.relative_to(ROOT)}: {'written' if changed else 'nothing to do'}\n")


if __name__ == "__main__":
    main()
