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
        "the process that enqueues dies before / after the commit",
        "nothing is stored, not even a key / the job runs without its caller",
        "never",
    ),
    "C1": Row(
        "the body has run, its outcome is not committed",
        "RUNNING until the lease is over, then another node runs it again; the attempt does not count",
        "**yes**, the body",
    ),
    "C2": Row(
        "the outcome is committed, nothing was published",
        "follow-ups (callbacks) were committed with it and start anyway; the body is not called again",
        "never",
    ),
    "C3": Row(
        "a failed attempt, before / after its retry is committed",
        "no attempt is used up, and it runs again / one attempt is used up, and it does not run before it is due",
        "before: yes, the body",
    ),
    "C4": Row(
        "the body has changed another system, its outcome is not committed",
        "it is done again, under the same `effect_key` and with a higher `fence`",
        "**yes**, the effect: use the key",
    ),
    "C5": Row(
        "a worker dies while it holds claimed jobs",
        "when its lease has expired exactly one other node claims each of them; an uncommitted claim has no effect",
        "yes, what had begun",
    ),
    "C5b": Row(
        "a worker hangs past its lease, then continues",
        "its late outcome is refused, the other node's counts; it notices and continues under a new id",
        "yes, what had begun",
    ),
    "C6": Row(
        "a worker dies in the middle of a failure for good",
        "state, error, history, keys and callback are all there, or none of them is",
        "before the commit: yes, the body",
    ),
    "C7": Row(
        "a worker dies between two targets of a publication, or two of its chunks",
        "each target gets each item once, by its hand-off key; no step of the source is called again",
        "never",
    ),
    "C8": Row(
        "the connection breaks while COMMIT is under way",
        "the writer checks whether the commit happened before it writes again",
        "never",
    ),
    "C9": Row(
        "a job that always kills its process",
        "is requeued three times, then FAILED as `worker_lost`; other jobs are not affected",
        "yes, up to its crash budget",
    ),
    "C10": Row(
        "a node dies while it recovers jobs, archives, purges, sweeps or delivers outside; several do it at once",
        "another node continues when the lease has expired: each job is requeued once, and charged for one crash; "
        "is archived, purged or failed once, with all that belongs to it",
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
