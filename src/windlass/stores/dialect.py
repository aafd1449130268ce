"""The questions a database must answer, with portable answers: many rows as one JSON text, read as a table.

A dialect overrides what its database can do better (a bulk statement, a locking claim) or must do differently.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, NamedTuple

import msgspec

from windlass.domain.admission import Holder
from windlass.domain.job import Claim, NewJob, Outcome, Payload
from windlass.domain.states import JobStatus
from windlass.domain.tags import tags_text
from windlass.domain.transition import NO_FAILURE, Transition
from windlass.stores.plan import Plan, Step


class Head(NamedTuple):
    """Where a claim looks: one priority level of one queue (or of one of its lanes), and when its first job is due."""

    queue: str
    level: int
    due_at: int
    lane: str | None = None


class ClaimRequest(NamedTuple):
    """What a node asks for: up to `wanted` jobs from these heads, `chunk` rows read of each."""

    node: str
    heads: Sequence[Head]
    wanted: int
    chunk: int
    boost_us: int


class Claimed(NamedTuple):
    """Claims in their order, and the payloads of those that are small: a waiting claim is light in any case."""

    claims: list[Claim]
    payloads: dict[str, Payload]


SMALL_PAYLOAD = 600
"""Bytes of arguments, params and options up to which they come with the claim; more is read when a slot takes it."""

_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
"""The escape of NUL, and not an escaped backslash before `u0000`."""


class Dialect:
    """Plans over many rows at once. Subclasses override what must differ. Ids are text, both ways."""

    name: ClassVar[str]

    def ids(self, values: Sequence[str]) -> str:
        """Ids as the fragment `ids` reads them."""
        return json_text(values)

    # ------------------------------------------------------------------ submission

    def insert_jobs(self, jobs: Sequence[NewJob], *, alone: bool, tell: str | None) -> Plan[None]:
        """Store the rows of new jobs, and `tell` other processes of them at the commit, where the database does that.

        `alone`: nothing else happens in this transaction.
        """
        del alone, tell
        rows = json_text([(*job[:8], tags_text(job.tags), *job[9:13], job.parent_id) for job in jobs])
        yield Step("insert_jobs", {"rows": rows})
        yield Step("insert_hot", {"rows": rows})

    def find_keys(self, keys: Iterable[str]) -> Plan[dict[str, str]]:
        """Which idempotency keys are taken, and by which job."""
        found = yield Step("find_keys", {"ids": json_text(list(keys))})
        return dict(found)

    def find_holders(self, keys: Iterable[str]) -> Plan[dict[str, Holder]]:
        """Which business keys are held, and by whom."""
        found = yield Step("find_holders", {"ids": json_text(list(keys))})
        return {key: Holder(job, status) for key, job, status in found}

    def insert_keys(self, step: str, keys: Sequence[tuple[str, str]]) -> Plan[int]:
        """Take keys (`insert_keys`, `insert_live_keys`), or tag jobs (`insert_tags`); answers how many were free."""
        count: int = yield Step(step, {"keys": json_text(keys)})
        return count

    # ------------------------------------------------------------------ claim

    def claim(self, request: ClaimRequest) -> Plan[Claimed]:
        """Claim by merging the heads of each level, in the exact order of J3.1."""
        if (yield Step("node_alive", {"id": request.node})) is None:
            return Claimed([], {})
        now = (yield Step("store_now"))[0]
        chunks = []
        for head in request.heads:
            name = "claim_heads" if head.lane is None else "claim_lane_heads"
            params = {"queue": head.queue, "level": head.level, "lane": head.lane}
            chunks.append((yield Step(name, params, literals={"chunk": request.chunk})))
        picked = merge_heads(chunks, request, now)
        if not picked:
            return Claimed([], {})
        ids = json_text(picked)
        yield Step("claim_picked", {"ids": ids, "node": request.node})
        rows = {row[0]: row for row in (yield Step("claimed_rows", {"ids": ids}))}
        small = yield Step("load_small_payloads", {"ids": ids, "small": SMALL_PAYLOAD})
        return Claimed([Claim._make(rows[job]) for job in picked], _payloads(small))

    def load(self, ids: Sequence[str]) -> Plan[dict[str, Payload]]:
        """The immutable part of claimed jobs."""
        return _payloads((yield Step("load_payloads", {"ids": self.ids(ids)}, alone=True)))

    # ------------------------------------------------------------------ completion

    def finish(self, transitions: Sequence[Transition], *, alone: bool) -> Plan[list[bool]]:
        """Terminal transitions: out of hot, into done, with their history. Answers which ones held their fence."""
        del alone
        rows = [_row(transition) for transition in transitions]
        text = json_text(rows)
        ended = yield Step("finish_done", {"rows": text})
        yield Step("remember", {"rows": text})
        held = [row[:2] for row in rows] if ended == len(rows) else (yield Step("held", {"rows": text}))
        yield Step("finish_hot", {"ids": json_text([job for job, _ in held])})
        return _won(rows, held)

    def requeue(self, transitions: Sequence[Transition]) -> Plan[list[bool]]:
        """Back to PENDING, due after their delay."""
        return (yield from self._reopen("requeue_hot", transitions))

    def hand_back(self, transitions: Sequence[Transition]) -> Plan[list[bool]]:
        """Back to PENDING as if never claimed, perhaps in another lane."""
        return (yield from self._reopen("hand_back_hot", transitions))

    def applied(self, transitions: Sequence[Transition]) -> Plan[list[bool]]:
        """Which transitions are in the history already: decides after a commit whose outcome was lost."""
        found = yield Step("applied", {"rows": json_text([_row(t) for t in transitions])})
        known = {(job, fence) for job, fence in found}
        return [(t.job_id, t.fence) in known for t in transitions]

    def _reopen(self, statement: str, transitions: Sequence[Transition]) -> Plan[list[bool]]:
        rows = [_row(transition) for transition in transitions]
        text = json_text(rows)
        held = yield Step("held", {"rows": text})
        yield Step("remember", {"rows": text})
        yield Step(statement, rows=[{**t._asdict(), "id": t.job_id} for t in transitions])
        return _won(rows, held)

    def notify(self, channel: str, words: str) -> Plan[None]:
        """Tell other processes at the commit, where the database does that."""
        del channel, words
        yield from ()

    # ------------------------------------------------------------------ reading

    def outcomes(self, ids: Sequence[str]) -> Plan[list[Outcome]]:
        """How far these jobs are; unknown ids are left out."""
        rows = yield Step("outcomes", {"ids": self.ids(ids)}, alone=True)
        return [Outcome(job, JobStatus(status), *rest) for job, status, *rest in rows]


GivenUp = Callable[[Dialect, Sequence[str]], Plan[None]]
"""What else to write, in the same transaction, for jobs that failed for good outside of any attempt."""


def nothing_else(dialect: Dialect, ids: Sequence[str]) -> Plan[None]:
    """A `GivenUp` that writes nothing."""
    del dialect, ids
    yield from ()


def _row(transition: Transition) -> tuple[Any, ...]:
    """A transition as the fragment `transitions` reads it."""
    times, failure = transition.times, transition.failure or NO_FAILURE
    return (
        transition.job_id,
        transition.fence,
        transition.status.value,
        transition.outcome,
        transition.number,
        transition.attempts,
        *times,
        transition.result,
        failure.error or None,
        failure.error_class or None,
        failure.traceback,
        transition.reason,
    )


def _payloads(rows: Iterable[Sequence[Any]]) -> dict[str, Payload]:
    return {row[0]: Payload._make(row[1:]) for row in rows}


def _won(rows: Sequence[tuple[Any, ...]], held: Sequence[tuple[Any, ...]]) -> list[bool]:
    """By id and fence: a late transition of a job may share its flush with one of the job's present holder."""
    winners = set(held)
    return [row[:2] in winners for row in rows]


def json_text(value: Any) -> str:
    """Rows as one JSON text."""
    text = msgspec.json.encode(value).decode()
    if "\\u0000" in text and _NUL.search(text):
        raise UnicodeError("a text holds the character NUL, at which SQLite would cut it off")
    return text


def merge_heads(chunks: Sequence[Sequence[tuple[Any, int, int]]], request: ClaimRequest, now: int) -> list[Any]:
    """The first `wanted` ids over all chunks, cut where a chunk that may go on ends.

    Beyond it the order is not known.
    """

    def rank(row: tuple[Any, int, int]) -> tuple[int, int, Any]:
        job, due, priority = row
        # Rows may have come due since `now` was asked for: they have waited for nothing yet.
        boost = max(now - due, 0) // request.boost_us if request.boost_us else 0
        return (-(priority + boost), due, job)

    ranked = [[rank(row) for row in chunk] for chunk in chunks if chunk]
    limits = [chunk[-1] for chunk in ranked if len(chunk) == request.chunk]
    limit = min(limits) if limits else None
    ids: list[Any] = []
    for key in heapq.merge(*ranked):
        if len(ids) == request.wanted or (limit is not None and key > limit):
            break
        ids.append(key[2])
    return ids
