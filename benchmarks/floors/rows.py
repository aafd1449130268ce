"""Rows and claims as the floor needs them, made by the dialect itself so that the statements are the real ones."""

from __future__ import annotations

from windlass.cli.bench.jobs import PAYLOAD
from windlass.domain.identity import new_job_id
from windlass.domain.job import Claim, NewJob
from windlass.domain.transition import Times, Transition, succeeded
from windlass.stores.plans.cluster import NodeRow

NODE = NodeRow("bench-floor", "localhost", 1, "0", None)
LEASE_US = 3_600_000_000
TARGET = "windlass.cli.bench.jobs:noop"
ARGUMENTS = f'[["{PAYLOAD}"],{{}}]'
QUEUE = "default"
LEVEL = 2


def new_rows(count: int, keyed_every: int = 0) -> list[NewJob]:
    """Rows of no-op jobs, every so many of them with an idempotency key."""
    rows = [NewJob(new_job_id(), QUEUE, TARGET, LEVEL, ARGUMENTS) for _ in range(count)]
    if keyed_every:
        rows[::keyed_every] = [row._replace(idempotency_key=str(row.id)) for row in rows[::keyed_every]]
    return rows


def ending(job: str, fence: int) -> Transition:
    """The transition of a job that succeeded at once."""
    claim = Claim(job, fence, QUEUE, TARGET, 0, 0, LEVEL, 1, 1)
    return succeeded(claim, Times(1_700_000_000_000_000, 1_700_000_000_000_001, 100), None, holds_key=False)
