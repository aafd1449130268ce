"""After each workload: is every job there, in its final state, and did each run exactly once? Counts every table."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from typing import Any

from windlass.cli.bench import scratch
from windlass.cli.bench.checks import Evidence, differences

RUNS = ("succeeded", "retried", "failed", "lost")
"""Outcomes of attempts whose body was entered; a claim that was released unstarted is none."""
RAN = """
SELECT count(DISTINCT job_id) FROM windlass_attempt WHERE outcome IN ('succeeded', 'retried', 'failed', 'lost')
"""


def verify(evidence: Evidence) -> list[str]:
    """Compare what the tables hold, and what the workers reported, with what should be; answers what is wrong."""
    url, ended, stored = evidence.app.url, evidence.ended, evidence.stored
    outcomes = _counted(url, "SELECT outcome, count(*) FROM windlass_attempt GROUP BY outcome")
    return differences(
        ("jobs stored", stored, _number(url, "SELECT count(*) FROM windlass_job")),
        ("idempotency keys", evidence.keys, _number(url, "SELECT count(*) FROM windlass_key")),
        (
            "jobs still live",
            _of("PENDING", stored - ended),
            _counted(url, "SELECT status, count(*) FROM windlass_hot GROUP BY status"),
        ),
        (
            "jobs ended",
            _of("SUCCEEDED", ended),
            _counted(url, "SELECT status, count(*) FROM windlass_done GROUP BY status"),
        ),
        (
            "jobs ended at the first attempt",
            ended,
            _number(url, "SELECT count(*) FROM windlass_done WHERE attempts = 1"),
        ),
        ("runs in the history", _of("succeeded", ended), {name: outcomes[name] for name in RUNS if name in outcomes}),
        ("jobs that ran", ended, _number(url, RAN)),
        *evidence.reported(),
    )


def _of(name: str, count: int) -> dict[str, int]:
    return {name: count} if count else {}


def _number(url: str, statement: str) -> int:
    return int(_rows(url, statement)[0][0])


def _counted(url: str, statement: str) -> dict[str, int]:
    return {str(name): int(count) for name, count in _rows(url, statement)}


def _rows(url: str, statement: str) -> Sequence[Sequence[Any]]:
    if not scratch.is_sqlite(url):
        return scratch.rows(url, statement)
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
        return connection.execute(statement).fetchall()
