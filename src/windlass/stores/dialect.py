"""The operations of a database, with portable defaults: many rows as one JSON text, read as a table.

A dialect overrides what its database does better (a bulk statement, a locking claim) or must do differently.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import msgspec

from windlass.domain.admission import Holder
from windlass.domain.dependencies import CountedGroup, GroupCounts, MemberChange
from windlass.domain.job import Claim, NewJob, Outcome, Payload
from windlass.domain.states import JobStatus, Move
from windlass.domain.transition import Transition
from windlass.stores.claim_order import (
    ANY_NUMBER,
    ClaimRequest,
    QueueLane,
    Share,
    Starts,
    Trust,
    WaitingLane,
    at_least,
    is_time,
    merge_heads,
)
from windlass.stores.plan import Plan, Step
from windlass.stores.transition_rows import row_of, success_row_of, won


class Claimed(NamedTuple):
    """Claims in their order, and the payloads of those that are small."""

    claims: list[Claim]
    payloads: dict[str, Payload]
    trust: Trust | None = None
    """What the next claim may assume about gates."""
    nameless: Sequence[object] = ()
    """Values in place of ids that are no texts: their rows were paused, and nothing was claimed."""


HeadRow = tuple[Any, Any, Any, Any, Any, int]
"""A row of a look at the heads: the columns of `heads` in queues.sql, the first job of the level where its position is
known, and in the row of the store's time the number of index entries that were read."""

SMALL_PAYLOAD = 600
"""Size in bytes up to which a payload comes with the claim; larger ones are read when a slot takes the job."""

STATUSES: frozenset[str] = frozenset(JobStatus)
"""A row with another status was damaged: its job has not ended."""

_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
"""The escape of NUL, and not an escaped backslash before `u0000`."""


class Dialect:
    """Plans over many rows at once. Subclasses override what must differ. Ids are text, both ways."""

    name: ClassVar[str]
    keeps_dead_entries: ClassVar[bool] = False
    """Whether entries of jobs that have ended stay in an index as long as some transaction may see them."""

    def ids(self, values: Sequence[str]) -> str:
        """Return ids as the fragment `in_ids` reads them."""
        return json_text(values)

    def names(self, values: Sequence[str]) -> str:
        """Return texts as the fragments `in_names` and `names` read them."""
        return json_text(values)

    def bulk(self, table: str, rows: Sequence[Sequence[Any]]) -> dict[str, Any]:
        """Return many rows as the parameters of a statement that reads them as a table of the kind `:bulk`."""
        del table
        return {"rows": json_text(rows)}

    # ------------------------------------------------------------------ submission

    def insert_jobs(self, jobs: Sequence[NewJob], *, alone: bool, notification: str | None) -> Plan[None]:
        """Store the rows of new jobs, and send `notification` to other processes at the commit, where supported.

        `alone`: nothing else happens in this transaction.
        """
        del alone, notification
        rows = json_text(jobs)
        yield Step("insert_jobs", {"rows": rows})
        yield Step("insert_hot", {"rows": rows})

    def find_keys(self, keys: Sequence[str]) -> Plan[dict[str, str]]:
        """Return the idempotency keys that are taken, with their jobs."""
        found = yield Step("find_keys", {"names": self.names(keys)})
        return dict(found)

    def find_holders(self, keys: Sequence[str]) -> Plan[dict[str, Holder]]:
        """Return the business keys that are held, with their holders."""
        found = yield Step("find_holders", {"names": self.names(keys)})
        return {key: Holder(holder, status, kind) for key, holder, status, kind in found}

    def insert_keys(self, step: str, keys: Sequence[tuple[str, str]]) -> Plan[int]:
        """Insert keys (`insert_keys`, `insert_live_keys`) or tags (`insert_tags`); return how many were free."""
        count: int = yield Step(step, {"rows": json_text(keys)})
        return count

    # ------------------------------------------------------------------ claim

    def heads(self, starts: Starts) -> Plan[list[HeadRow]]:
        """Return rows of queues, their levels, first due times and limits, of circuits, and of the store's time."""
        del starts
        return [(*row, None, 0) for row in (yield Step("heads", autocommit=True))]

    def claim(self, request: ClaimRequest, shares: Mapping[QueueLane, Share] | None) -> Plan[Claimed]:
        """Claim by merging the heads of each level of queues and lanes, in the exact order of J3.1.

        `shares` is what gates allow for queues and lanes behind them; None: there are no gates to check, and the
        claim is the whole plan. A queue with a limit that is not counted there gives nothing.
        """
        shares = shares or {}
        state = yield Step("claim_state", {"node": request.node})
        now, alive = state[0][:2]
        if not alive:
            return Claimed([], {})
        limited = {queue for *_, queue in state}
        asked = {queue_lane for queue_lane, one in shares.items() if one.counts_queue}
        heads = [head for head in request.heads if head.queue_lane in asked or head.queue not in limited]
        chunks = []
        for head in heads:
            name = "claim_heads" if head.lane is None else "claim_lane_heads"
            params = {"queue": head.queue, "level": head.level, "lane": head.lane}
            permits = shares.get(head.queue_lane, ANY_NUMBER).permits
            chunk = request.chunk if permits is None else min(request.chunk, at_least(permits))
            chunks.append((yield Step(name, params, literals={"chunk": chunk})))
        nameless = [job for chunk in chunks for job, *_ in chunk if type(job) is not str]
        if nameless:  # the next claim finds what waits behind them
            yield Step("pause_nameless", rows=[{"id": job} for job in nameless])
            return Claimed([], {}, nameless=nameless)
        picked = merge_heads(heads, chunks, request, now, shares)
        held = [(job, shares.get(head.queue_lane, ANY_NUMBER).holds) for job, head in picked]
        return (yield from self._claim_chosen(request.node, held))

    def _claim_chosen(self, node: str, picked: Sequence[tuple[str, str | None]]) -> Plan[Claimed]:
        if not picked:
            return Claimed([], {})
        ids = [job for job, _ in picked]
        for holds in {holds for _, holds in picked}:
            some = json_text([job for job, held in picked if held == holds])
            yield Step("claim_chosen", {"ids": some, "node": node, "holds": holds})
        return claimed((yield Step("claimed_rows", {"ids": json_text(ids), "small": SMALL_PAYLOAD})))

    def waiting_lanes(self, after: tuple[str, str], most: int) -> Plan[list[WaitingLane]]:
        """Return the next lanes with waiting jobs."""
        found: list[WaitingLane] = []
        queue, lane = after
        while len(found) < most:
            following = yield Step("next_lane", {"queue": queue, "lane": lane}, autocommit=True)
            if following is None:
                break
            queue, lane = following
            rows = yield Step("lane_dues", {"queue": queue, "lane": lane}, autocommit=True)
            dues = {level: due for level, due in rows if is_time(due)}
            if dues:
                found.append(WaitingLane(queue, lane, dues))
        return found

    def write_gates(self, rows: Sequence[tuple[str, int, str | None]], *, final: bool) -> Plan[None]:
        """Write the changed counts of gates: name, change, and the record of its rate."""
        yield Step("write_gates", {"rows": json_text(rows)}, final=final)

    def load(self, ids: Sequence[str]) -> Plan[dict[str, Payload]]:
        """Return the payloads of claimed jobs."""
        return _payloads((yield Step("load_payloads", {"ids": self.ids(ids)}, autocommit=True)))

    # ------------------------------------------------------------------ completion

    def finish(self, transitions: Sequence[Transition], *, alone: bool) -> Plan[list[bool]]:
        """Write terminal transitions: from hot to done, with their history. Return which ones held their fence."""
        del alone
        yield from self._stage(transitions)
        ended = yield Step("finish_done")
        yield Step("insert_attempts")
        yield Step("release_permits")
        all_held = ended == len(transitions)
        held = [(one.job_id, one.fence) for one in transitions] if all_held else (yield Step("held"))
        ids = json_text([job for job, _ in held])
        yield Step("finish_hot", {"ids": ids})
        yield Step("count_ended", {"ids": ids})
        yield Step("clear_staged")
        return [True] * len(transitions) if all_held else won(transitions, held)

    def requeue(self, transitions: Sequence[Transition]) -> Plan[list[bool]]:
        """Return jobs to PENDING, due after their delay."""
        return (yield from self._reopen("requeue_hot", transitions))

    def release(self, transitions: Sequence[Transition]) -> Plan[list[bool]]:
        """Return jobs to PENDING as if never claimed, perhaps in another lane."""
        return (yield from self._reopen("release_hot", transitions))

    def applied(self, transitions: Sequence[Transition]) -> Plan[list[bool]]:
        """Return which transitions are in the history already, after a commit whose answer was lost."""
        yield from self._stage(transitions)
        found = yield Step("applied")
        yield Step("clear_staged")
        return won(transitions, found)

    def _stage(self, transitions: Sequence[Transition]) -> Plan[None]:
        """Give transitions to the statements that follow, in a table of the session, which has to be cleared then."""
        if all(transition.move is Move.SUCCEED for transition in transitions):  # as usual: half the columns
            yield Step("stage_successes", {"rows": json_text([success_row_of(one) for one in transitions])})
        else:
            yield Step("stage_transitions", {"rows": json_text([row_of(one) for one in transitions])})

    def _reopen(self, statement: str, transitions: Sequence[Transition]) -> Plan[list[bool]]:
        yield from self._stage(transitions)
        held = yield Step("held")
        yield Step("insert_attempts")
        yield Step("release_permits")
        if any(transition.outcome == "retried" for transition in transitions):
            yield Step("count_retried", {"ids": json_text([job for job, _ in held])})
        yield Step(
            statement,
            rows=[{**t._asdict(), "id": t.job_id, "started_at": t.times.started_at} for t in transitions],
        )
        yield Step("clear_staged")
        return won(transitions, held)

    def release_followers(self, parents: Sequence[tuple[str, int]], most: int) -> Plan[Counter[tuple[str, int]]]:
        """Make followers of ended parents due, at most so many; return how many by queue and priority.

        A parent is given with one way to follow it.
        """
        return Counter((yield Step("release_followers", {"rows": json_text(parents), "most": most})))

    def count_members(self, changes: Sequence[MemberChange], *, wait: bool) -> Plan[list[CountedGroup]]:
        """Count members of groups that have ended or were revived; return the groups as they are then."""
        del wait
        rows = yield Step("count_members", {"rows": json_text(changes)})
        return [CountedGroup(group, GroupCounts(*counts)) for group, *counts in rows]

    def lock_flows(self, flow_ids: Sequence[str], *, wait: bool) -> Plan[list[str]]:
        """Lock flows against being archived, purged and started over at once; return those that are locked."""
        del wait
        yield from ()
        return list(flow_ids)

    def notify(self, channel: str, payload: str) -> Plan[None]:
        """Notify other processes at the commit, where the database supports it."""
        del channel, payload
        yield from ()

    # ------------------------------------------------------------------ reading

    def outcomes(self, ids: Sequence[str]) -> Plan[list[Outcome]]:
        """Return the status and outcome of these jobs; unknown ids are left out."""
        rows = yield Step("outcomes", {"ids": self.ids(ids)}, autocommit=True)
        return [Outcome(job, JobStatus(status), *rest) for job, status, *rest in rows if status in STATUSES]


_CLAIM = slice(len(Claim._fields))
_PAYLOAD = slice(len(Claim._fields), None)
_ARGS = len(Claim._fields) + Payload._fields.index("args")
"""Positions in a claimed row. Claims are read by position for speed: they come hundreds at a time."""


def claimed(rows: Sequence[Sequence[Any]]) -> Claimed:
    """Return rows of claims, with the columns of a payload where it is small, else with NULL."""
    claims = [Claim._make(row[_CLAIM]) for row in rows]
    return Claimed(claims, {row[0]: Payload._make(row[_PAYLOAD]) for row in rows if row[_ARGS] is not None})


def _payloads(rows: Iterable[Sequence[Any]]) -> dict[str, Payload]:
    return {row[0]: Payload._make(row[1:]) for row in rows}


def json_text(value: Any) -> str:
    """Return rows as one JSON text."""
    text = msgspec.json.encode(value).decode()
    if "\\u0000" in text and _NUL.search(text):
        raise UnicodeError("a text holds the character NUL, at which SQLite would cut it off")
    return text
