"""What must hold of a store whatever died, asked in SQL past the code under test.

Every claim and every way back to the queue raises a job's fence by one. So the attempts of a job that was never paused
have the fences 1, 3, 5 …, without gaps, and while it lives its row has the one after the last of them. Those of a
follower in a flow begin later if it was canceled with what is before it and revived: each revival raises the fence too.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Collection
from itertools import pairwise
from typing import Any, NamedTuple

from tests.support.facts import now_of, one, rows
from tests.support.flow_invariants import check_flows, followers
from windlass import Windlass

COUNTED = {"succeeded", "retried", "failed"}
"""Outcomes that spend an attempt."""


class Attempt(NamedTuple):
    """A row of the history."""

    fence: int
    outcome: str


class Live(NamedTuple):
    """A job's row while it lives."""

    status: str
    fence: int
    attempts: int
    crash_count: int
    node: str | None


class Ended(NamedTuple):
    """A job's row once it has ended."""

    status: str
    fence: int
    attempts: int
    crash_count: int


def check_invariants(url: str, purged: int = 0, retried: Collection[str] = ()) -> None:
    """Everything that is true whenever there are no writers.

    Of `purged` failed jobs only the count is left. The jobs of `retried` had failed for good and were started over.
    """
    jobs = {row[0] for row in rows(url, "SELECT id FROM windlass_job")}
    live = _by_id(url, "SELECT id, status, fence, attempts, crash_count, node FROM windlass_hot", Live)
    ended = _by_id(url, "SELECT id, status, fence, attempts, crash_count FROM windlass_done", Ended)
    attempts: dict[Any, list[Attempt]] = defaultdict(list)
    for job, fence, outcome in rows(url, "SELECT job_id, fence, outcome FROM windlass_attempt ORDER BY job_id, fence"):
        attempts[job].append(Attempt(fence, outcome))
    assert live.keys() & ended.keys() == set(), "jobs that live and have ended"
    assert live.keys() | ended.keys() == jobs, "jobs that are stored and in no state, or the other way round"
    assert set(attempts) <= jobs, "a history without its job"
    archived = {row[0] for row in rows(url, "SELECT id FROM windlass_archive")}
    assert archived & jobs == set(), "jobs that are archived and are not"
    following = followers(url)
    batches = {row[0] for row in rows(url, "SELECT id FROM windlass_job WHERE target = 'windlass:batch'")}
    jobs, live, ended = jobs - batches, _without(live, batches), _without(ended, batches)  # nothing ever runs them
    waiting = {row[0] for row in rows(url, "SELECT job_id FROM windlass_signal_wait")}
    for job, row in {**live, **ended}.items():
        if job in waiting:
            _check_fences_of_waiter(row, attempts[job])
        else:
            _check_fences(row, attempts[job], follows=job in following)
    latest = {job: _since_retry(attempts[job]) if str(job) in retried else attempts[job] for job in jobs}
    for job, row in live.items():
        _check_live(row, latest[job])
    for job, end in ended.items():
        _check_ended(end, latest[job])
    check_flows(url)
    _check_owners(url, live)
    _check_keys(url, live)
    check_gates(url)
    if not archived:  # the histories of those are with them
        earlier = sum(latest[job] != attempts[job] for job in jobs)
        _check_counts(url, ended, attempts, purged + earlier)


def _without(found: dict[Any, Any], left_out: set[Any]) -> dict[Any, Any]:
    return {job: row for job, row in found.items() if job not in left_out}


def _by_id(url: str, question: str, kind: Any) -> dict[Any, Any]:
    found = rows(url, question)
    by_id = {row[0]: kind(*row[1:]) for row in found}
    assert len(by_id) == len(found), "two rows for one job"
    return by_id


def _check_fences(row: Live | Ended, history: list[Attempt], *, follows: bool) -> None:
    runs = isinstance(row, Live) and row.status == "RUNNING"
    first = 1
    if follows:
        first = history[0].fence if history else row.fence + (not runs)
    assert [attempt.fence for attempt in history] == [2 * n + first for n in range(len(history))], history
    if isinstance(row, Live):
        assert row.fence == first - 1 + 2 * len(history) + runs, (row, history)


def _check_fences_of_waiter(row: Live | Ended, history: list[Attempt]) -> None:
    """A signal and a timeout raise the fence, too."""
    fences = [attempt.fence for attempt in history]
    assert all(later - earlier >= 2 for earlier, later in pairwise(fences)), history
    assert not fences or row.fence >= fences[-1], (row, history)


def _since_retry(history: list[Attempt]) -> list[Attempt]:
    """The attempts since a job was last started over: behind its last failure that was not the end."""
    failures = [number for number, attempt in enumerate(history[:-1]) if attempt.outcome == "failed"]
    return history[failures[-1] + 1 :] if failures else history


def _check_live(row: Live, history: list[Attempt]) -> None:
    assert row.attempts == sum(attempt.outcome == "retried" for attempt in history), (row, history)
    assert row.crash_count == sum(attempt.outcome == "lost" for attempt in history), (row, history)
    assert (row.node is not None) == (row.status == "RUNNING"), row
    assert {attempt.outcome for attempt in history} <= {"retried", "lost", "released", "snoozed", "passed_over"}


def _check_ended(row: Ended, history: list[Attempt]) -> None:
    last = history[-1].outcome if history else None
    expected = {"SUCCEEDED": {"succeeded"}, "FAILED": {"failed", "lost"}}.get(row.status)
    if expected is not None:
        assert last in expected, (row, history)
        assert row.fence == history[-1].fence, (row, history)
    terminal = [attempt for attempt in history if attempt.outcome in ("succeeded", "failed", "canceled")]
    assert len(terminal) <= 1, ("ended twice", row, history)
    assert row.attempts == sum(attempt.outcome in COUNTED for attempt in history), (row, history)
    assert row.crash_count == sum(attempt.outcome == "lost" for attempt in history), (row, history)


def _check_owners(url: str, live: dict[Any, Live]) -> None:
    """Nothing runs without a node that holds a lease."""
    alive = f"SELECT id FROM windlass_node WHERE state = 'alive' AND lease_until >= {now_of(url)}"
    owners = {row.node for row in live.values() if row.status == "RUNNING"}
    assert owners <= {row[0] for row in rows(url, alive)}, "RUNNING without a live lease"


def _check_counts(url: str, ended: dict[Any, Ended], attempts: dict[Any, list[Attempt]], purged: int) -> None:
    """The counts match the jobs, whichever process died while they were written or added up."""
    counts = "coalesce(sum(succeeded), 0), coalesce(sum(failed), 0), coalesce(sum(retried), 0)"
    both = [rows(url, f"SELECT {counts} FROM windlass_{table}")[0] for table in ("stat", "stat_delta")]
    found = [int(one + other) for one, other in zip(*both, strict=True)]
    expected = [sum(row.status == status for row in ended.values()) for status in ("SUCCEEDED", "FAILED")]
    expected[1] += purged
    expected.append(sum(each.outcome == "retried" for history in attempts.values() for each in history))
    assert found == expected, f"counted {found}, there are {expected} (succeeded, failed, retried)"


def _check_keys(url: str, live: dict[Any, Live]) -> None:
    holders = {row[0] for row in rows(url, "SELECT holder_id FROM windlass_live_key WHERE holder_kind = 'job'")}
    assert holders <= live.keys() | _live_batches(url), "business keys of jobs that have ended"
    schedules = rows(url, "SELECT id FROM windlass_schedule WHERE state IN ('active', 'paused')")
    held = rows(url, "SELECT holder_id FROM windlass_live_key WHERE holder_kind = 'schedule'")
    assert sorted(map(str, held)) == sorted(map(str, schedules)), "keys of schedules that are not live, or have none"
    lost = """SELECT count(*) FROM windlass_tick t WHERE NOT EXISTS (SELECT 1 FROM windlass_job j WHERE j.id = t.job_id)
        AND NOT EXISTS (SELECT 1 FROM windlass_archive a WHERE a.id = t.job_id)"""
    assert one(url, lost) == 0, "ticks without a run"
    gone = """SELECT count(*) FROM windlass_key k WHERE NOT EXISTS (SELECT 1 FROM windlass_job j WHERE j.id = k.job_id)
        AND NOT EXISTS (SELECT 1 FROM windlass_archive a WHERE a.id = k.job_id)"""
    assert one(url, gone) == 0, "idempotency keys without a job"
    assert {row[0] for row in rows(url, "SELECT job_id FROM windlass_permit")} <= live.keys(), "permits of ended jobs"
    if hasattr(Windlass, "dead_letters"):
        letters = {row[0] for row in rows(url, "SELECT job_id FROM windlass_dead_letter")}
        failed = """SELECT id FROM windlass_done WHERE status = 'FAILED' AND target <> 'windlass:batch'
            UNION ALL SELECT id FROM windlass_archive WHERE status = 'FAILED' AND target <> 'windlass:batch'"""
        assert letters == {row[0] for row in rows(url, failed)}


def _live_batches(url: str) -> set[Any]:
    return {row[0] for row in rows(url, "SELECT id FROM windlass_hot WHERE target = 'windlass:batch'")}


def check_gates(url: str) -> None:
    """A gate's count, less released permits that are not subtracted yet, is the number of jobs that hold one."""
    idle = "SELECT count(*) FROM windlass_hot WHERE status <> 'RUNNING' AND holds IS NOT NULL"
    assert one(url, idle) == 0, "places held by jobs that do not run"
    holders: Counter[str] = Counter()
    holding = """SELECT holds FROM windlass_hot WHERE status = 'RUNNING' AND holds IS NOT NULL
        UNION ALL SELECT holds FROM windlass_permit"""
    for (held,) in rows(url, holding):
        holders.update(json.loads(held))
    freed: Counter[str] = Counter()
    for gate, places in rows(url, "SELECT gate, places FROM windlass_freed"):
        freed[gate] += places
    gates = dict(rows(url, "SELECT name, in_use FROM windlass_gate"))
    assert (holders.keys() | freed.keys()) <= gates.keys(), ("places of gates that are not there", holders, freed)
    counted = {name: in_use - freed[name] for name, in_use in gates.items()}
    assert counted == {name: holders[name] for name in gates}, "gates that count other places than are held"
