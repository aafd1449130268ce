"""The questions a database must answer, with portable answers: one statement per row, in the subset all databases run.

A dialect overrides what its database can do better (a bulk statement, a locking claim) or must do differently.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, NamedTuple
from uuid import UUID

from windlass.domain.admission import Holder
from windlass.domain.job import Claim, NewJob, Outcome, Payload
from windlass.domain.states import JobStatus
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
    payloads: dict[UUID, Payload]


SMALL_PAYLOAD = 600
"""Bytes of arguments up to which they come with the claim; larger ones are read when a slot takes the job."""


class Dialect:
    """Portable plans. Subclasses say how ids travel and override what must differ."""

    name: ClassVar[str]

    def key(self, value: UUID) -> Any:
        """An id as the driver wants it."""
        return value.bytes

    def uuid(self, value: Any) -> UUID:
        """An id as the driver gave it."""
        return UUID(bytes=value)

    # ------------------------------------------------------------------ submission

    def insert_jobs(self, jobs: Sequence[NewJob], *, alone: bool) -> Plan[None]:
        """Store the rows of new jobs. `alone`: nothing else happens in this transaction."""
        rows = [self._job_row(job) for job in jobs]
        yield Step("insert_job", rows=rows)
        yield Step("insert_hot", rows=rows)

    def find_keys(self, keys: Iterable[str]) -> Plan[dict[str, UUID]]:
        """Which idempotency keys are taken, and by which job."""
        found = yield Step("find_key", rows=[{"idempotency_key": key} for key in keys])
        return {row[0]: self.uuid(row[1]) for row in found if row is not None}

    def find_holders(self, keys: Iterable[str]) -> Plan[dict[str, Holder]]:
        """Which business keys are held, and by whom."""
        found = yield Step("find_holder", rows=[{"business_key": key} for key in keys])
        return {row[0]: Holder(self.uuid(row[1]), row[2]) for row in found if row is not None}

    def insert_keys(self, step: str, column: str, owner: str, keys: Sequence[tuple[str, UUID]]) -> Plan[int]:
        """Take keys (`insert_key` or `insert_live_key`); answers how many were free."""
        counts = yield Step(step, rows=[{column: key, owner: self.key(job)} for key, job in keys])
        return sum(counts)

    def insert_tags(self, tags: Sequence[tuple[str, UUID]]) -> Plan[None]:
        """Store the tag rows of new jobs."""
        yield Step("insert_tag", rows=[{"tag": tag, "job_id": self.key(job)} for tag, job in tags])

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
        ids = merge_heads(chunks, request, now)
        yield Step("claim_one", rows=[{"id": job, "node": request.node} for job in ids])
        rows = yield Step("claimed_row", rows=[{"id": job} for job in ids])
        small = yield Step("load_small_payload", rows=[{"id": job, "small": SMALL_PAYLOAD} for job in ids])
        payloads = [self.payload_of(row) for row in small if row is not None]
        return Claimed([self.claim_of(row) for row in rows], {payload.job_id: payload for payload in payloads})

    def claim_of(self, row: Sequence[Any]) -> Claim:
        """A claimed row as a value."""
        return Claim(self.uuid(row[0]), *row[1:])

    def load(self, ids: Sequence[UUID]) -> Plan[list[Payload]]:
        """The immutable part of claimed jobs, in no particular order."""
        rows = yield Step("load_payload", rows=[{"id": self.key(job)} for job in ids])
        return [self.payload_of(row) for row in rows if row is not None]

    def payload_of(self, row: Sequence[Any]) -> Payload:
        """A loaded row as a value."""
        job_id, args, options, params, tags, correlation, business_key, created = row
        return Payload(self.uuid(job_id), args, options, params, tags_of(tags), correlation, business_key, created)

    # ------------------------------------------------------------------ completion

    def finish(self, transitions: Sequence[Transition], *, alone: bool) -> Plan[list[bool]]:
        """Terminal transitions.

        Out of hot, into done, with their history. Answers which ones still held their fence.
        """
        rows = [self._transition_row(transition) for transition in transitions]
        counts = yield Step("finish_done", rows=rows)
        yield Step("finish_attempt", rows=rows)
        yield Step("finish_hot", rows=rows)
        return [count == 1 for count in counts]

    def requeue(self, transitions: Sequence[Transition]) -> Plan[list[bool]]:
        """Back to PENDING, due after their delay."""
        return (yield from self._reopen("requeue_hot", transitions))

    def hand_back(self, transitions: Sequence[Transition]) -> Plan[list[bool]]:
        """Back to PENDING as if never claimed, perhaps in another lane."""
        return (yield from self._reopen("hand_back_hot", transitions))

    def applied(self, transitions: Sequence[Transition]) -> Plan[list[bool]]:
        """Which transitions are in the history already.

        Decides after a commit whose outcome was lost with its connection.
        """
        rows = [{"job_id": self.key(t.job_id), "fence": t.fence} for t in transitions]
        found = yield Step("applied_attempt", rows=rows)
        return [row is not None for row in found]

    def _reopen(self, statement: str, transitions: Sequence[Transition]) -> Plan[list[bool]]:
        rows = [self._transition_row(transition) for transition in transitions]
        yield Step("finish_attempt", rows=rows)
        counts = yield Step(statement, rows=rows)
        return [count == 1 for count in counts]

    # ------------------------------------------------------------------ reading

    def outcomes(self, ids: Sequence[UUID]) -> Plan[list[Outcome]]:
        """How far these jobs are; unknown ids are left out."""
        rows = yield Step("outcome_of", rows=[{"id": self.key(job)} for job in ids])
        return [self.outcome_of(row) for row in rows if row is not None]

    def outcome_of(self, row: Sequence[Any]) -> Outcome:
        """A row of `outcome_of` as a value."""
        return Outcome(self.uuid(row[0]), JobStatus(row[1]), *row[2:])

    # ------------------------------------------------------------------ rows

    def _job_row(self, job: NewJob) -> dict[str, Any]:
        row = job._asdict()
        row["id"] = self.key(job.id)
        row["tags"] = tags_text(job.tags)
        return row

    def _transition_row(self, transition: Transition) -> dict[str, Any]:
        failure = transition.failure or NO_FAILURE
        return {
            "job_id": self.key(transition.job_id),
            "fence": transition.fence,
            "status": str(transition.status),
            "outcome": transition.outcome,
            "number": transition.number,
            "attempts": transition.attempts,
            "delay_us": transition.delay_us,
            "result": transition.result,
            "error": failure.error or None,
            "error_class": failure.error_class or None,
            "traceback": failure.traceback,
            "reason": transition.reason,
            "lane": transition.lane,
            "started_at": transition.times.started_at,
            "ended_at": transition.times.ended_at,
            "wait_us": transition.times.wait_us,
        }


def merge_heads(chunks: Sequence[Sequence[tuple[Any, int, int]]], request: ClaimRequest, now: int) -> list[Any]:
    """The first `wanted` ids over all chunks, cut where a chunk that may go on ends.

    Beyond it the order is not known.
    """

    def rank(row: tuple[Any, int, int]) -> tuple[int, int, Any]:
        job, due, priority = row
        boost = (now - due) // request.boost_us if request.boost_us else 0
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


def tags_text(tags: tuple[str, ...]) -> str | None:
    """Tags as they are stored beside the job."""
    return json.dumps(tags) if tags else None


def tags_of(text: str | None) -> tuple[str, ...]:
    """Tags as they were."""
    return tuple(json.loads(text)) if text else ()
