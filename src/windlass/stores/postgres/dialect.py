"""What PostgreSQL does differently: arrays of rows, claims that skip locked rows, COPY for large submissions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, ClassVar

from windlass.domain.dependencies import CountedGroup, GroupCounts, MemberChange
from windlass.domain.job import Claim, NewJob
from windlass.domain.states import ENTERED, JobStatus, Move
from windlass.domain.transition import Transition
from windlass.stores.claim_order import (
    ANY_NUMBER,
    FIRST,
    ClaimRequest,
    Head,
    QueueLane,
    Share,
    Starts,
    WaitingLane,
    at_least,
)
from windlass.stores.columns import NEW_JOB, NEW_JOB_TYPES
from windlass.stores.dialect import SMALL_PAYLOAD, Claimed, Dialect, HeadRow, claimed, json_text
from windlass.stores.plan import Plan, Step
from windlass.stores.postgres.text import copy_lines, ids, numbers, texts
from windlass.stores.postgres.transition_columns import TransitionColumns
from windlass.stores.queries import bulk_columns
from windlass.stores.transition_rows import won

COPY_FROM = 100  # rows of a submission: COPY is a quarter faster than arrays
COPY_CHUNK = 500
"""Number of rows sent at a time, so that the server works while the next ones are encoded."""


class PostgresDialect(Dialect):
    """Plans that write many rows with one statement."""

    name: ClassVar[str] = "postgres"
    keeps_dead_entries: ClassVar[bool] = True
    copy_from: ClassVar[int] = COPY_FROM

    def ids(self, values: Sequence[str]) -> str:
        """Return an array literal."""
        return ids(values)

    def names(self, values: Sequence[str]) -> str:
        """Return an array literal."""
        return texts(values)

    def bulk(self, table: str, rows: Sequence[Sequence[Any]]) -> dict[str, Any]:
        """Return one array for each column."""
        columns = zip(*rows, strict=True)
        return {
            name: _ARRAYS[kind](column)
            for (name, kind), column in zip(bulk_columns(self.name)[table], columns, strict=True)
        }

    # ------------------------------------------------------------------ submission

    def insert_jobs(self, jobs: Sequence[NewJob], *, alone: bool, notification: str | None) -> Plan[None]:
        """Store one row with plain values (a quarter faster), a few with arrays, many with COPY.

        The notification is sent in the same statement or transaction.
        """
        if not jobs:
            return
        if len(jobs) == 1:
            yield Step("insert_job", {**jobs[0]._asdict(), "notification": notification}, alone=alone)
            return
        if len(jobs) < self.copy_from:
            yield Step("insert_jobs", {**_job_arrays(jobs), "notification": notification}, alone=alone)
            return
        now = (yield Step("store_now"))[0]
        yield Step("copy_jobs", {"texts": _in_chunks(jobs, now, _job_columns)})
        yield Step("copy_hot", {"texts": _in_chunks(jobs, now, _hot_columns)})
        if notification is not None:
            yield Step("notify_work", {"notification": notification})

    def insert_keys(self, step: str, keys: Sequence[tuple[str, str]]) -> Plan[int]:
        """Insert all keys with one statement."""
        count: int = yield Step(step, {"key": texts([key for key, _ in keys]), "id": ids([job for _, job in keys])})
        return count

    # ------------------------------------------------------------------ claim

    def heads(self, starts: Starts) -> Plan[list[HeadRow]]:
        """Read each level from its start on."""
        by_level = {f"{queue} {level}": start for (queue, level), start in starts.items()}
        before, *rows = yield Step("heads", {"starts": json_text(by_level)}, autocommit=True)
        walked = -before[-1]
        return [(*row[:-1], walked + row[-1] if row[0] is None else 0) for row in rows]

    def claim(self, request: ClaimRequest, shares: Mapping[QueueLane, Share] | None) -> Plan[Claimed]:
        """Claim from all queues and lanes with one statement."""
        heads, alone, shares = request.heads, shares is None, shares or {}
        if len(heads) == 1 and not request.others:
            return (yield from self._claim_level(request, heads[0], shares.get(heads[0].queue_lane), alone=alone))
        starts = [head.start or FIRST for head in heads]
        params: dict[str, Any] = {
            "node": request.node,
            "queues": texts([head.queue for head in heads]),
            "levels": numbers([head.level for head in heads]),
            "from_dues": numbers([start.due_at for start in starts]),
            "from_ids": ids([start.job_id for start in starts]),
            "other_levels": numbers([head.level for head in request.others]),
            "other_dues": numbers([head.due_at for head in request.others]),
            "wanted": request.wanted,
            "boost_us": request.boost_us,
            "small": SMALL_PAYLOAD,
        }
        if shares:
            by_head = [shares.get(head.queue_lane, ANY_NUMBER) for head in heads]
            params["lanes"] = texts([head.lane for head in heads])
            params["gates"] = texts([share.gate for share in by_head])
            params["permits"] = numbers([share.permits for share in by_head])
            params["holds"] = _holds(shares)
        name = "claim_gated" if shares else "claim"
        rows = yield Step(name, params, alone=alone, literals={"chunk": request.chunk})
        _sort(rows, {head.level for head in heads}, request.boost_us)
        return claimed(rows)

    def _claim_level(self, request: ClaimRequest, head: Head, share: Share | None, *, alone: bool) -> Plan[Claimed]:
        """Claim from one level of a queue or lane, where nothing has to be merged."""
        gated, share = share is not None, share or ANY_NUMBER
        wanted = request.wanted if share.permits is None else min(request.wanted, share.permits)
        chunk = min(request.chunk, at_least(wanted)) if gated else request.chunk
        params: dict[str, Any] = {
            "node": request.node,
            "queue": head.queue,
            "level": head.level,
            "holds": share.holds,
            "wanted": wanted,
            "small": SMALL_PAYLOAD,
        }
        if head.lane is None:
            params["from_due"], params["from_id"] = head.start or FIRST
            rows = yield Step("claim_level", params, alone=alone, literals={"chunk": chunk})
        else:
            rows = yield Step("claim_lane_level", {**params, "lane": head.lane}, literals={"chunk": chunk})
        rows.sort(key=_by_due)
        return claimed(rows)

    def waiting_lanes(self, after: tuple[str, str], most: int) -> Plan[list[WaitingLane]]:
        """Find the lanes with one statement."""
        queue, lane = after
        rows = yield Step("waiting_lanes", {"queue": queue, "lane": lane}, autocommit=True, literals={"window": most})
        lanes = groupby(rows, key=itemgetter(0, 1))
        return [
            WaitingLane(name, found, {level: due for _, _, level, due in levels}) for (name, found), levels in lanes
        ]

    def write_gates(self, rows: Sequence[tuple[str, int, str | None]], *, final: bool) -> Plan[None]:
        """Write all gates with one statement."""
        names, changes, taken = zip(*rows, strict=True)
        params = {"name": texts(names), "change": numbers(changes), "taken": texts(taken)}
        yield Step("write_gates", params, final=final)

    def release_followers(self, parents: Sequence[tuple[str, int]], most: int) -> Plan[Counter[tuple[str, int]]]:
        """Release one way to follow after the other: parents are then looked up as one list of ids."""
        released: Counter[tuple[str, int]] = Counter()
        for follows in sorted({way for _, way in parents}):
            found = ids(parent for parent, way in parents if way == follows)
            params = {"ids": found, "follows": follows, "most": most - released.total()}
            released += Counter({(row[0], row[1]): row[2] for row in (yield Step("release_followers", params))})
        return released

    def count_members(self, changes: Sequence[MemberChange], *, wait: bool) -> Plan[list[CountedGroup]]:
        """Groups that other transactions have locked are not waited for unless `wait` is True."""
        if wait:
            yield Step("lock_groups", {"ids": ids(sorted(change.group_id for change in changes))})
        groups, succeeded, failed = zip(*changes, strict=True)
        params = {"id": ids(groups), "succeeded": numbers(succeeded), "failed": numbers(failed)}
        rows = yield Step("count_members", params)
        return [CountedGroup(group, GroupCounts(*counts) if counted else None) for group, *counts, counted in rows]

    def lock_flows(self, flow_ids: Sequence[str], *, wait: bool) -> Plan[list[str]]:
        """Flows that other transactions have locked are left out unless `wait` is True."""
        chosen = {"ids": ids(sorted(flow_ids))}
        if wait:
            yield Step("lock_flows", chosen)
            return list(flow_ids)
        return [flow for (flow,) in (yield Step("try_lock_flows", chosen))]

    # ------------------------------------------------------------------ completion

    def finish(self, transitions: Sequence[Transition], *, alone: bool) -> Plan[list[bool]]:
        """Write ends, history and counts with one statement; if all succeeded, as usual, with half the arrays."""
        columns = TransitionColumns(transitions)
        if columns.moves.count(Move.SUCCEED) == len(transitions):
            name, params = "finish_succeeded", columns.of_successes()
        else:
            name, params = "finish", columns.of_all()
            params["statuses"] = texts([ENTERED[move].value for move in columns.moves])
            params["reasons"] = texts(columns.reasons)
        params["results"] = texts(columns.results)
        count, ids, fences = yield Step(name, {**params, "expected": len(transitions)}, alone=alone)
        if count == len(transitions):
            return [True] * count
        return won(transitions, zip(ids or (), fences or (), strict=True))

    def requeue(self, transitions: Sequence[Transition]) -> Plan[list[bool]]:
        """Make jobs due after their delay."""
        return (yield from self._reopen_all(transitions, [t.delay_us for t in transitions]))

    def release(self, transitions: Sequence[Transition]) -> Plan[list[bool]]:
        """Leave the due times as they were."""
        return (yield from self._reopen_all(transitions, [None] * len(transitions)))

    def _reopen_all(self, transitions: Sequence[Transition], delays: Sequence[int | None]) -> Plan[list[bool]]:
        params = TransitionColumns(transitions).of_all()
        params["delays"] = numbers(delays)
        params["lanes"] = texts([t.lane for t in transitions])
        rows = yield Step("reopen", params)
        return won(transitions, rows)

    def applied(self, transitions: Sequence[Transition]) -> Plan[list[bool]]:
        """Look all of them up with one statement."""
        params = {"ids": ids([t.job_id for t in transitions]), "fences": numbers([t.fence for t in transitions])}
        return won(transitions, (yield Step("applied", params)))

    def notify(self, channel: str, payload: str) -> Plan[None]:
        """Notify in the transaction: nothing is sent if it is rolled back."""
        yield Step("notify", {"channel": channel, "payload": payload})


_PRIORITY, _DUE, _PICKED = (Claim._fields.index(name) for name in ("priority", "due_at", "picked_at"))
"""Positions in a claimed row."""

_by_due = itemgetter(_DUE, 0)
"""Due time and id of a claimed row."""


def _holds(shares: Mapping[QueueLane, Share]) -> str:
    """Return the permits that jobs will hold, as a JSON object by queue and lane."""
    return json_text({f"{queue} {lane or ''}": one.holds for (queue, lane), one in shares.items() if one.holds})


def _sort(rows: list[Sequence[Any]], levels: Collection[int], boost_us: int) -> None:
    """Sort rows as J3.1 demands, since RETURNING has no order.

    Within one level that is the order of due times, because the boost grows with the waiting time.
    """

    def rank(row: Sequence[Any]) -> tuple[int, int, str]:
        due = row[_DUE]
        return (-(row[_PRIORITY] + ((row[_PICKED] - due) // boost_us if boost_us else 0)), due, row[0])

    rows.sort(key=_by_due if len(levels) == 1 else rank)


CopyColumns = list[Sequence[str | int | None]]

_ARRAYS: dict[str, Callable[[Sequence[Any]], str]] = {"id": texts, "text": texts, "integer": numbers}
"""Functions that make array literals, by column type."""


def _job_arrays(jobs: Sequence[NewJob]) -> dict[str, str]:
    columns = zip(*jobs, strict=True)  # the last ones, the position in a flow and the wait, have their own tables
    return {name: _ARRAYS[kind](column) for (name, kind), column in zip(NEW_JOB_TYPES.items(), columns, strict=False)}


def _in_chunks(
    jobs: Sequence[NewJob], now: int, columns: Callable[[Sequence[NewJob], int], CopyColumns]
) -> Iterator[str]:
    for start in range(0, len(jobs), COPY_CHUNK):
        yield copy_lines(columns(jobs[start : start + COPY_CHUNK], now))


def _job_columns(jobs: Sequence[NewJob], now: int) -> CopyColumns:
    """Return the columns in the order of `copy_jobs`."""
    values = dict(zip(NewJob._fields, zip(*jobs, strict=True), strict=True))
    return [*(values[name] for name in NEW_JOB), [now] * len(jobs)]


def _hot_columns(jobs: Sequence[NewJob], now: int) -> CopyColumns:
    """Return the columns in the order of `copy_hot`."""
    values = dict(zip(NewJob._fields, zip(*jobs, strict=True), strict=True))
    dues = [job.due_at if job.due_at is not None or job.delay_us is None else now + job.delay_us for job in jobs]
    ends = [job.expires_at if job.expires_us is None else now + job.expires_us for job in jobs]
    zeros, pending = [0] * len(jobs), [JobStatus.PENDING.value] * len(jobs)
    names = [values[name] for name in ("id", "queue", "target", "lane")]
    return [*names, pending, values["priority"], dues, zeros, zeros, zeros, ends]
