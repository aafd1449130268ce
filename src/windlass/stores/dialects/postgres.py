"""PostgreSQL's own ways: many rows in one statement, claims that skip what others hold, COPY for large submissions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar
from uuid import UUID

from windlass.domain.admission import Holder
from windlass.domain.job import Claim, NewJob, Outcome, Payload
from windlass.domain.states import JobStatus
from windlass.domain.transition import NO_FAILURE, Transition
from windlass.stores.dialect import SMALL_PAYLOAD, Claimed, ClaimRequest, Dialect, Head, tags_text
from windlass.stores.dialects.postgres_text import copy_line, plain, texts
from windlass.stores.plan import Plan, Step

COPY_FROM = 100
"""Submissions of at least this many rows go by COPY, a quarter faster than arrays."""
COPY_CHUNK = 500
"""Rows written at a time, so that the server works while the next ones are put into words."""


class PostgresDialect(Dialect):
    """The set-based plans."""

    name: ClassVar[str] = "postgres"

    def key(self, value: UUID) -> Any:
        """The driver takes UUIDs as they are."""
        return value

    def uuid(self, value: Any) -> UUID:
        """The driver gives UUIDs as they are."""
        found: UUID = value
        return found

    def ids(self, values: Sequence[UUID]) -> str:
        """An array."""
        return plain(values)

    # ------------------------------------------------------------------ submission

    def insert_jobs(self, jobs: Sequence[NewJob], *, alone: bool) -> Plan[None]:
        """Plain values for one row, a quarter faster; arrays for a few; COPY for many."""
        if len(jobs) == 1:
            yield Step("insert_job", {**jobs[0]._asdict(), "tags": tags_text(jobs[0].tags)}, alone=alone)
            return
        if len(jobs) < COPY_FROM:
            yield Step("insert_jobs", _job_arrays(jobs), alone=alone)
            return
        now = (yield Step("store_now"))[0]
        yield Step("copy_jobs", {"texts": _in_chunks(jobs, lambda job: _job_line(job, now))})
        yield Step("copy_hot", {"texts": _in_chunks(jobs, lambda job: _hot_line(job, now))})

    def find_keys(self, keys: Iterable[str]) -> Plan[dict[str, UUID]]:
        """All keys in one statement."""
        rows = yield Step("find_keys", {"keys": texts(keys)})
        return dict(rows)

    def find_holders(self, keys: Iterable[str]) -> Plan[dict[str, Holder]]:
        """All keys in one statement."""
        rows = yield Step("find_holders", {"keys": texts(keys)})
        return {key: Holder(holder, status) for key, holder, status in rows}

    def insert_keys(self, step: str, keys: Sequence[tuple[str, UUID]]) -> Plan[int]:
        """All keys in one statement."""
        count: int = yield Step(step, {"keys": texts([key for key, _ in keys]), "ids": plain([job for _, job in keys])})
        return count

    # ------------------------------------------------------------------ claim

    def claim(self, request: ClaimRequest) -> Plan[Claimed]:
        """One statement for the queues.

        Lanes, which are rare, one each before it, for at most half of what is wanted.
        """
        lanes = [head for head in request.heads if head.lane is not None]
        heads = [head for head in request.heads if head.lane is None]
        claims: list[Claim] = []
        for lane in lanes:
            room = (request.wanted + 1) // 2 - len(claims) if heads else request.wanted - len(claims)
            if room > 0:
                claims += yield from self._claim_lane(request, lane, room)
        wanted = request.wanted - len(claims)
        if not heads or wanted <= 0:
            return Claimed(claims, {})
        params = {
            "node": request.node,
            "queues": texts([head.queue for head in heads]),
            "levels": plain([head.level for head in heads]),
            "wanted": wanted,
            "boost_us": request.boost_us,
            "small": SMALL_PAYLOAD,
        }
        rows = yield Step("claim", params, alone=not lanes, literals={"chunk": request.chunk})
        rows.sort(key=lambda row: _rank(row, request.boost_us))
        claims += [Claim._make(row[:9]) for row in rows]
        return Claimed(claims, {row[0]: self.payload_of((row[0], *row[9:])) for row in rows if row[9] is not None})

    def _claim_lane(self, request: ClaimRequest, head: Head, room: int) -> Plan[list[Claim]]:
        params = {"node": request.node, "queue": head.queue, "lane": head.lane, "level": head.level}
        rows = yield Step("claim_lane", params, literals={"chunk": room})
        rows.sort(key=lambda row: _rank(row, request.boost_us))
        return [Claim._make(row) for row in rows]

    def load(self, ids: Sequence[UUID]) -> Plan[list[Payload]]:
        """All payloads in one statement."""
        rows = yield Step("load_payloads", {"ids": plain(ids)}, alone=True)
        return [self.payload_of(row) for row in rows]

    # ------------------------------------------------------------------ completion

    def finish(self, transitions: Sequence[Transition], *, alone: bool) -> Plan[list[bool]]:
        """Delete, insert and remember in one statement; the usual case, all succeeded, with half the arrays."""
        if all(t.status is JobStatus.SUCCEEDED for t in transitions):
            name, params = "finish_succeeded", _success_arrays(transitions)
        else:
            name, params = "finish", _transition_arrays(transitions)
            params["statuses"] = texts([t.status.value for t in transitions])
            params["reasons"] = texts([t.reason for t in transitions])
        params["results"] = texts([t.result for t in transitions])
        count, ids, fences = yield Step(name, {**params, "expected": len(transitions)}, alone=alone)
        if count == len(transitions):
            return [True] * count
        return _won(transitions, zip(ids or (), fences or (), strict=True))

    def requeue(self, transitions: Sequence[Transition]) -> Plan[list[bool]]:
        """Due after their delay."""
        return (yield from self._reopen_all(transitions, [t.delay_us for t in transitions]))

    def hand_back(self, transitions: Sequence[Transition]) -> Plan[list[bool]]:
        """Due as before."""
        return (yield from self._reopen_all(transitions, [None] * len(transitions)))

    def _reopen_all(self, transitions: Sequence[Transition], delays: Sequence[int | None]) -> Plan[list[bool]]:
        params = _transition_arrays(transitions)
        params["delays"] = plain(delays)
        params["lanes"] = texts([t.lane for t in transitions])
        rows = yield Step("reopen", params)
        return _won(transitions, rows)

    def applied(self, transitions: Sequence[Transition]) -> Plan[list[bool]]:
        """All in one statement."""
        params = {"ids": plain([t.job_id for t in transitions]), "fences": plain([t.fence for t in transitions])}
        found = {(job, fence) for job, fence in (yield Step("applied", params))}
        return [(t.job_id, t.fence) in found for t in transitions]

    # ------------------------------------------------------------------ reading

    def outcomes(self, ids: Sequence[UUID]) -> Plan[list[Outcome]]:
        """All in one statement."""
        rows = yield Step("outcomes", {"ids": plain(ids)}, alone=True)
        return [self.outcome_of(row) for row in rows]


def _rank(row: Sequence[Any], boost_us: int) -> tuple[int, int, UUID]:
    """The order of J3.1: RETURNING has none of its own. A row's due time is at 7, its claim time at 8."""
    boost = (row[8] - row[7]) // boost_us if boost_us else 0
    return (-(row[6] + boost), row[7], row[0])


def _won(transitions: Sequence[Transition], held: Iterable[tuple[UUID, int]]) -> list[bool]:
    """By id and fence: a late transition of a job may share its flush with one of the job's present holder."""
    winners = set(held)
    return [(t.job_id, t.fence) in winners for t in transitions]


def _success_arrays(transitions: Sequence[Transition]) -> dict[str, str]:
    times = [t.times for t in transitions]
    return {
        "ids": plain([t.job_id for t in transitions]),
        "fences": plain([t.fence for t in transitions]),
        "numbers": plain([t.number for t in transitions]),
        "started": plain([moment.started_at for moment in times]),
        "ended": plain([moment.ended_at for moment in times]),
        "waits": plain([moment.wait_us for moment in times]),
    }


def _transition_arrays(transitions: Sequence[Transition]) -> dict[str, str]:
    failures = [t.failure or NO_FAILURE for t in transitions]
    return {
        **_success_arrays(transitions),
        "outcomes": texts([t.outcome for t in transitions]),
        "attempts": plain([t.attempts for t in transitions]),
        "errors": texts([failure.error or None for failure in failures]),
        "error_classes": texts([failure.error_class or None for failure in failures]),
        "tracebacks": texts([failure.traceback for failure in failures]),
    }


def _job_arrays(jobs: Sequence[NewJob]) -> dict[str, str]:
    return {
        "ids": plain([job.id for job in jobs]),
        "queues": texts([job.queue for job in jobs]),
        "targets": texts([job.target for job in jobs]),
        "priorities": plain([job.priority for job in jobs]),
        "args": texts([job.args for job in jobs]),
        "options": texts([job.options for job in jobs]),
        "tags": texts([tags_text(job.tags) for job in jobs]),
        "params": texts([job.params for job in jobs]),
        "correlations": texts([job.correlation_id for job in jobs]),
        "keys": texts([job.idempotency_key for job in jobs]),
        "business_keys": texts([job.business_key for job in jobs]),
        "dues": plain([job.due_at for job in jobs]),
        "delays": plain([job.delay_us for job in jobs]),
    }


def _in_chunks(jobs: Sequence[NewJob], line: Callable[[NewJob], str]) -> Iterator[str]:
    for start in range(0, len(jobs), COPY_CHUNK):
        yield "".join([line(job) for job in jobs[start : start + COPY_CHUNK]])


def _job_line(job: NewJob, now: int) -> str:
    return copy_line(
        (str(job.id), job.queue, job.target, str(job.priority)),
        (
            job.args,
            job.options,
            tags_text(job.tags),
            job.params,
            job.correlation_id,
            job.idempotency_key,
            job.business_key,
        ),
        str(now),
    )


def _hot_line(job: NewJob, now: int) -> str:
    due = job.due_at if job.due_at is not None else now + job.delay_us
    return f"{job.id}\t{job.queue}\t{job.target}\tPENDING\t{job.priority}\t{due}\t0\t0\t0\n"
