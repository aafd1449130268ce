"""Plans that read what became of re-driven jobs and executions, each for a bounded number of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan, Step

MOST_EXECUTIONS: Final = 20
"""Number of executions whose items are looked at: each has up to 8 live parts of 128 items."""
MOST_ITEMS: Final = 1_000
MINUTE_US: Final = 60_000_000


class RetriedJob(NamedTuple):
    """A job that waits for its next attempt."""

    attempts: int
    options: str | None


class StepAttempt(NamedTuple):
    """A step, of an execution or of one of its items, that has failed and is tried again."""

    pipeline: str
    version: str
    step: int
    attempt: int
    """Attempt that runs or comes next, from 1."""


class RedrivenJobs(NamedTuple):
    """What became of re-driven jobs and executions."""

    statuses: dict[str, str]
    """Status of each job; jobs deleted since are left out."""
    jobs: list[RetriedJob]
    steps: list[StepAttempt]


def suppressed(dialect: Dialect, since_us: int) -> Plan[int]:
    """Return how many hand-offs of publications were suppressed in the minute of this time, and since then."""
    del dialect
    row = yield Step("suppressed_since", {"minute": since_us // MINUTE_US}, autocommit=True)
    return int(row[0])


def look(dialect: Dialect, ids: Sequence[str]) -> Plan[RedrivenJobs]:
    """Return the statuses of jobs, and those of them that are tried again."""
    chosen = {"ids": dialect.ids(ids)}
    statuses = dict((yield Step("statuses_of_jobs", chosen, autocommit=True)))
    jobs = yield Step("retried_jobs", chosen, autocommit=True)
    steps = yield Step("retried_steps", chosen, autocommit=True)
    first = {"ids": dialect.ids(ids[:MOST_EXECUTIONS])}
    items = yield Step("retried_items", first, autocommit=True, literals={"window": MOST_ITEMS})
    return RedrivenJobs(statuses, [RetriedJob(*row) for row in jobs], [StepAttempt(*row) for row in (*steps, *items)])
