"""Plans that bring archived flows back: a job of a flow can be started over only where what depends on it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple
from uuid import UUID

import msgspec

from windlass.domain.batch import BATCH_TARGET, BatchProgress
from windlass.errors import JobStateError
from windlass.stores.dialect import Dialect, json_text
from windlass.stores.plan import Plan, Step
from windlass.stores.plans import archive, flow_retention, reads

MOST_ROWS: Final = 1_000
"""Largest number of jobs of an archived flow that is restored."""


class ReturnedFlows(NamedTuple):
    """What came of bringing the flows of some jobs back."""

    refused: dict[str, JobStateError]
    """Jobs whose flows are too large, and why they cannot be started over."""
    later: frozenset[str]
    """Jobs whose flows are left for another transaction."""


def bring_back(
    dialect: Dialect, ids: Sequence[str], letters: Sequence[reads.Archived] = (), *, part: bool = False
) -> Plan[ReturnedFlows]:
    """Move what is archived of the flows of these dead letters back to the working tables, groups too.

    `letters`: those of them that were archived until this transaction. With `part` it brings back no more than
    `MOST_ROWS` jobs, and at least one flow.
    """
    flows = (yield from flow_retention.lock_of(dialect, ids)) if ids else {}
    sizes = yield from _archived(dialect, sorted(set(flows.values())))
    chosen: dict[str, int] = {}
    refused: dict[str, JobStateError] = {}
    later: set[str] = set()
    for job in (job for job in ids if flows.get(job) in sizes):
        flow = flows[job]
        if sizes[flow] > MOST_ROWS:
            refused[job] = _too_large(job)
        elif part and chosen and flow not in chosen and sum(chosen.values()) + sizes[flow] > MOST_ROWS:
            later.add(job)
        else:
            chosen[flow] = sizes[flow]
    if chosen:
        yield from _restore(dialect, sorted(chosen), letters)
    return ReturnedFlows(refused, frozenset(later))


def _archived(dialect: Dialect, flows: Sequence[str]) -> Plan[dict[str, int]]:
    """Return the flows of which something is archived, with their number of jobs as far as it matters."""
    if not flows:
        return {}
    rows = yield Step("flow_sizes", {"ids": dialect.ids(flows)}, literals={"most": MOST_ROWS + 1})
    return {flow: archived + working for flow, archived, working in rows if archived}


def _restore(dialect: Dialect, flows: Sequence[str], letters: Sequence[reads.Archived]) -> Plan[None]:
    chosen = {"ids": dialect.ids(flows)}
    found = [reads.unpacked(row) for row in (yield Step("lock_archived_flows", chosen))]
    yield from archive.restore(dialect, found)
    totals = {
        one.position["group_id"]: one.group_total
        for one in (*letters, *found)
        if one.position is not None and one.group_total is not None
    }
    groups = []
    for group, flow, ended, succeeded in (yield Step("ended_members", chosen)):
        total = max(totals.get(group, 0), ended)  # members that were purged since had failed
        groups.append((group, flow, total, int(succeeded), total - int(succeeded)))
    if groups:
        yield Step("restore_groups", {"rows": json_text(groups)})
    for one in found:
        if one.job["target"] == BATCH_TARGET and one.job["result"]:
            yield from _restore_batch(one.job["id"], one.job["result"])


def _restore_batch(batch: str, result: str) -> Plan[None]:
    """Restore the counts of a batch from its own row, which keeps them as its result."""
    try:
        counts = msgspec.json.decode(result, type=BatchProgress)
    except (msgspec.MsgspecError, ValueError, RecursionError):  # damaged: its children are started over without it
        return
    numbers = {"total": counts.total, "succeeded": counts.completed, "failed": counts.failed}
    yield Step("restore_batch", {"id": batch, **numbers})


def _too_large(job: str) -> JobStateError:
    return JobStateError(
        UUID(job),
        f"it belongs to a flow of more than {MOST_ROWS:,} jobs that is archived, and a flow of that size is not "
        "restored; enqueue the missing part of it as a new flow (app.get shows the arguments of its jobs)",
    )
