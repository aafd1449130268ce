"""A re-drive: bounded batches, each in its own transaction, with pauses and a check of how the jobs fare."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from uuid import UUID

from windlass.client import commits
from windlass.client.redrive_order import Order
from windlass.client.redrive_totals import LimitOf, RedriveTotals
from windlass.domain.clock import monotonic
from windlass.domain.dead_letter import Redrive
from windlass.errors import DuplicateBusinessKeyError, JobStateError
from windlass.publisher import Publisher
from windlass.runtime.verbs import Verb, sleep
from windlass.stores.access import Access
from windlass.stores.ending import FollowUps
from windlass.stores.plans import redriven_jobs, redrives, triage
from windlass.stores.plans.dead_letters import AuditEntry
from windlass.stores.plans.triage import LetterFilters, Spot

LOOK_EVERY: Final = 1.0
"""Seconds between two checks of re-driven jobs, after the last one was re-driven."""


OnProgress = Callable[[Redrive], object]


def redrive(
    order: Order,
    access: Access,
    publisher: Publisher,
    follow_ups: FollowUps,
    limit_of: LimitOf,
    on_progress: OnProgress | None,
) -> Verb[Redrive]:
    """Select, re-drive, publish, wait and check, batch by batch.

    Jobs that fail again meanwhile are not selected again.
    """
    sums = RedriveTotals(order, limit_of)
    spot: Spot | None = None
    now = yield from access.read(triage.now)
    filters = order.filters._replace(before=min(now + 1, order.filters.before or now + 1))
    if sums.counts_handoffs:
        sums.begin(now, (yield from access.read(redriven_jobs.suppressed, now)))
    while sums.left > 0:
        began, size = monotonic(), min(order.batch, sums.left)
        if order.dry_run:
            batch = yield from access.read(redrives.select, filters, spot, size, sums.known)
        else:
            bounds = (filters, spot, size, sums.known, sums.entry)
            batch = yield from _next_batch(access, publisher, follow_ups, bounds)
        revived = yield from commits.publish(access, publisher, batch.moved, follow_ups)
        sums.add(batch)
        spot = batch.next_spot
        if on_progress is not None and batch.selected:
            on_progress(sums.result())
        if spot is None or not sums.left:
            break
        if order.rate is not None and revived:
            yield from sleep(max(0.0, began + revived / order.rate - monotonic()))
        yield from _look(access, sums)
        if sums.judge():
            return sums.result()
    yield from _look(access, sums)
    if order.wait:
        yield from _wait(access, sums, on_progress)
    return sums.result()


def _look(access: Access, sums: RedriveTotals) -> Verb[None]:
    """Check the outcomes of jobs that had not ended yet, and read the number of suppressed hand-offs."""
    running = sums.running
    if not running:
        return
    sums.look_at(running, (yield from access.read(redriven_jobs.look, running)))
    if sums.counts_handoffs:
        sums.suppressed_until((yield from access.read(redriven_jobs.suppressed, sums.began)))


def _wait(access: Access, sums: RedriveTotals, on_progress: OnProgress | None) -> Verb[None]:
    """Wait until all have ended, or too many have failed again."""
    while True:
        if on_progress is not None:
            on_progress(sums.result())
        if sums.judge() or not sums.running:
            return
        yield from sleep(LOOK_EVERY)
        yield from _look(access, sums)


_Bounds = tuple[LetterFilters, Spot | None, int, set[str], AuditEntry]


def _next_batch(
    access: Access, publisher: Publisher, follow_ups: FollowUps, bounds: _Bounds
) -> Verb[redrives.RedriveBatch]:
    """Re-drive the next batch; a smaller one while a key of a job that would be revived with it is held."""
    while True:
        filters, spot, size, known, entry = bounds
        try:
            return (yield from commits.revive(access, publisher, follow_ups, redrives.redrive, *bounds, follow_ups))
        except DuplicateBusinessKeyError as error:
            if size == 1:
                batch = yield from access.read(redrives.select, filters, spot, size, known)
                why = f"job {error.holder} holds the business key {error.key!r} of a job that follows it"
                return batch._replace(kept={job: JobStateError(UUID(job), why) for job in batch.selected})
            bounds = (filters, spot, size // 2, known, entry)
