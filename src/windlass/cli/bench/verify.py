"""After each workload: is every job there, in its final state, and did each run exactly once?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from windlass.cli.bench.processes import Drained
from windlass.cli.bench.scratch import rows

RUNS = ("succeeded", "retried", "failed", "lost")
"""Outcomes of attempts whose body was entered; a claim handed back unstarted is none."""
RAN = """
SELECT count(DISTINCT job_id) FROM windlass_attempt WHERE outcome IN ('succeeded', 'retried', 'failed', 'lost')
"""


class Found(NamedTuple):
    """What the tables hold."""

    jobs: int
    keys: int
    live: dict[str, int]
    """By status."""
    ended: dict[str, int]
    """By status."""
    ended_at_first_try: int
    outcomes: dict[str, int]
    """Of attempts."""
    ran: int
    """Jobs with an attempt whose body was entered."""


def found_in(url: str) -> Found:
    """Count everything."""
    return Found(
        jobs=rows(url, "SELECT count(*) FROM windlass_job")[0][0],
        keys=rows(url, "SELECT count(*) FROM windlass_key")[0][0],
        live=_counted(url, "SELECT status, count(*) FROM windlass_hot GROUP BY status"),
        ended=_counted(url, "SELECT status, count(*) FROM windlass_done GROUP BY status"),
        ended_at_first_try=rows(url, "SELECT count(*) FROM windlass_done WHERE attempts = 1")[0][0],
        outcomes=_counted(url, "SELECT outcome, count(*) FROM windlass_attempt GROUP BY outcome"),
        ran=rows(url, RAN)[0][0],
    )


def _counted(url: str, statement: str) -> dict[str, int]:
    return {str(name): int(count) for name, count in rows(url, statement)}


def enqueued(url: str, expected: int, keys: int = 0) -> list[str]:
    """Everything was stored and waits; answers what is wrong."""
    found = found_in(url)
    return list(
        _differences(
            ("jobs stored", expected, found.jobs),
            ("jobs waiting", {"PENDING": expected}, found.live),
            ("idempotency keys", keys, found.keys),
            ("jobs ended", {}, found.ended),
            ("attempts", {}, found.outcomes),
        )
    )


def drained(url: str, stored: int, run: Drained, *, all_of_them: bool = True) -> list[str]:
    """Every job ended once, or waits untouched; answers what is wrong."""
    found = found_in(url)
    ended = stored if all_of_them else run.ended
    waiting = {"PENDING": stored - ended} if stored > ended else {}
    runs = {outcome: count for outcome, count in found.outcomes.items() if outcome in RUNS}
    return list(
        _differences(
            ("jobs stored", stored, found.jobs),
            ("jobs ended", {"SUCCEEDED": ended}, found.ended),
            ("jobs ended at the first attempt", ended, found.ended_at_first_try),
            ("jobs still live", waiting, found.live),
            ("runs in the history", {"succeeded": ended}, runs),
            ("jobs that ran", ended, found.ran),
            ("bodies entered", ended, run.bodies),
            ("jobs told as ended", ended, run.ended),
            ("exit codes of workers", [0] * len(run.codes), run.codes),
        )
    )


def _differences(*facts: tuple[str, object, object]) -> Iterator[str]:
    for what, expected, got in facts:
        if expected != got:
            yield f"{what}: expected {expected}, found {got}"
