"""The plan of a re-drive: start one bounded batch of dead letters over, with its audit entry, in one transaction."""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise
from typing import NamedTuple

from windlass.stores.dialect import Dialect
from windlass.stores.ending import FollowUps, MovedJobs
from windlass.stores.plan import Plan
from windlass.stores.plans import dead_letters, moves, triage
from windlass.stores.plans.dead_letters import AuditEntry


class RedriveBatch(NamedTuple):
    """The result of one batch, and where the next one begins; None when there is nothing more."""

    selected: list[str]
    moved: MovedJobs
    kept: dict[str, moves.NotRevived]
    next_spot: triage.Spot | None


def select(
    dialect: Dialect,
    filters: triage.LetterFilters,
    spot: triage.Spot | None,
    limit: int,
    known: Collection[str] = (),
) -> Plan[RedriveBatch]:
    """Return the next jobs that could be re-driven, without changes. Those in `known` were re-driven before."""
    found = yield from triage.oldest(dialect, filters, spot, limit)
    return _selected(found, known)


def _selected(found: triage.TriagePage, known: Collection[str]) -> RedriveBatch:
    ids = [facts.job_id for facts in found.letters if facts.job_id not in known]
    return RedriveBatch(ids, MovedJobs([]), {}, found.next_spot)


def redrive(
    dialect: Dialect,
    filters: triage.LetterFilters,
    spot: triage.Spot | None,
    limit: int,
    known: Collection[str],
    entry: AuditEntry,
    follow_ups: FollowUps = (),
) -> Plan[RedriveBatch]:
    """Start the next jobs over. One that cannot be is skipped, and returned with the reason."""
    found = yield from triage.oldest(dialect, filters, spot, limit)
    batch = _selected(found, known)
    if batch.selected:
        moved, kept, later = yield from moves.retry_free(dialect, batch.selected, follow_ups)
        batch = _selected(_until(found, later), {*known, *later})._replace(moved=moved, kept=kept)
        yield from dead_letters.audit(dialect, counted(entry, batch))
    return batch


def _until(found: triage.TriagePage, later: Collection[str]) -> triage.TriagePage:
    """Return the same letters, with the next ones beginning at the first that is left for later."""
    for before, facts in pairwise(found.letters):
        if facts.job_id in later:
            return found._replace(next_spot=triage.Spot(before.created_at, before.job_id))
    return found


def counted(entry: AuditEntry, batch: RedriveBatch) -> AuditEntry:
    """Return the entry of a re-drive with one more batch."""
    sums = {"selected": len(batch.selected), "redriven": len(batch.moved.ended), "skipped": len(batch.kept)}
    detail = {**entry.detail, **{name: entry.detail.get(name, 0) + more for name, more in sums.items()}}
    return entry._replace(affected=detail["redriven"], detail=detail)
