"""Plans for the ends of batches: a batch ends in the transaction that counts its last child, and only there.

The row of its job among the live jobs ensures that it happens once: a plan that finds no row does nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

import msgspec

from windlass.domain.batch import (
    FIRST_CONDITION,
    NEVER,
    NO_RULES,
    BatchDecision,
    BatchProgress,
    BatchReport,
    BatchRules,
    after_batch,
)
from windlass.domain.dependencies import CountedGroup, GroupCounts
from windlass.errors import DuplicateBusinessKeyError
from windlass.runtime.failpoints import reached
from windlass.stores.channels import DONE
from windlass.stores.dialect import Dialect, json_text
from windlass.stores.plan import Plan, RestartPlanError, Step


class _Flow(msgspec.Struct):
    batch: BatchRules | None = None


class _Options(msgspec.Struct):
    """The part of stored options that matters here."""

    flow: _Flow | None = None


_decode = msgspec.json.Decoder(_Options).decode


def _rules(batch: str, options: str | None) -> Plan[BatchRules]:
    """Return the rules in the options of a batch. Of damaged ones, no condition holds, and predicates are called."""
    try:
        found = _decode(options) if options else None
    except (msgspec.MsgspecError, ValueError, RecursionError):
        ways = yield Step("ways_behind", {"id": batch})
        conditions = max((way for (way,) in ways), default=0) + 1 - FIRST_CONDITION
        return BatchRules((NEVER,) * conditions, guards=True)
    return NO_RULES if found is None or found.flow is None else found.flow.batch or NO_RULES


class CountedBatch(NamedTuple):
    """A batch whose children were counted."""

    report: BatchReport
    decision: BatchDecision | None
    """What its end does to its followers; None: it has not ended in this transaction."""


def count(dialect: Dialect, counted: Sequence[CountedGroup]) -> Plan[list[CountedBatch]]:
    """Write the ends of batches whose last child was counted; return them, and those whose progress is to be published.

    Nothing is read or written for a batch of which neither is true.
    """
    known = {one.group_id: one.counts for one in counted if one.counts is not None}
    complete = sorted(name for name, counts in known.items() if counts.complete)
    live = yield from _live(dialect, complete)
    wanted = sorted(name for name, counts in known.items() if counts.publish_progress or name in live)
    if not wanted:
        return []
    rows = yield Step("batch_jobs", {"ids": dialect.ids(wanted)})
    found = []
    for batch, queue, correlation_id, options in rows:
        rules, progress = (yield from _rules(batch, options)), BatchProgress.of(known[batch])
        report = BatchReport(batch, queue, correlation_id, rules.on_progress, progress)
        found.append(_ended(report, known[batch], rules) if batch in live else CountedBatch(report, None))
    yield from _end(dialect, [one.report for one in found if one.decision is not None])
    return found


def _live(dialect: Dialect, complete: Sequence[str]) -> Plan[set[str]]:
    """Lock the batches among these that have not ended."""
    if not complete:
        return set()
    return {batch for (batch,) in (yield Step("lock_batches", {"ids": dialect.ids(complete)}))}


def _ended(report: BatchReport, counts: GroupCounts, rules: BatchRules) -> CountedBatch:
    decision = after_batch(counts, rules)
    result = msgspec.json.encode(report.progress).decode()
    return CountedBatch(report._replace(ended=decision.status, result=result), decision)


def _end(dialect: Dialect, ended: Sequence[BatchReport]) -> Plan[None]:
    if not ended:
        return
    chosen = {"ids": dialect.ids([one.batch_id for one in ended])}
    yield Step("end_batches", {"rows": json_text([(one.batch_id, one.ended, one.result) for one in ended])})
    yield Step("finish_hot", chosen)
    yield Step("delete_live_keys", chosen)
    yield from dialect.notify(DONE, "")
    reached("batch.ended")


def rules_of_batch(dialect: Dialect, batch: str) -> Plan[BatchRules]:
    """Read the rules of a batch."""
    for *_, options in (yield Step("batch_jobs", {"ids": dialect.ids([batch])})):
        return (yield from _rules(batch, options))
    return NO_RULES


def reopen(dialect: Dialect, batches: Sequence[str]) -> Plan[list[str]]:
    """Make batches live again of which a child is started over; return those that are live then. Not canceled ones."""
    if not batches:
        return []
    rows = yield Step("lock_failed_batches", {"ids": dialect.ids(sorted(batches))})
    failed = [batch for (batch,) in rows]
    if failed:
        yield from _reopen(dialect, failed)
    return sorted((yield from _live(dialect, sorted(batches))))


def _reopen(dialect: Dialect, failed: Sequence[str]) -> Plan[None]:
    chosen = {"ids": dialect.ids(failed)}
    keys = sorted((key, batch) for key, batch in (yield Step("batch_keys", chosen)))
    if keys:
        for key, holder in sorted((yield from dialect.find_holders([key for key, _ in keys])).items()):
            raise DuplicateBusinessKeyError(key, UUID(holder.id))
        if (yield from dialect.insert_keys("insert_live_keys", keys)) != len(keys):
            raise RestartPlanError  # another job has just taken one
    yield Step("reopen_batches", chosen)
    yield Step("forget_ended", chosen)
