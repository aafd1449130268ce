"""The plan that stores answers to waiting steps: those of many callers in one transaction, each call all or none.

The job that waits for an answer is locked first, whatever its status: it is looked up before, and again under the lock.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from windlass.domain.execution import OPEN
from windlass.domain.external_wait import (
    Answer,
    AnsweredWait,
    AnswerFate,
    KnownWait,
    WaitKey,
    all_accepted,
    fate_of,
)
from windlass.runtime.failpoints import reached
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan, RestartPlanError, Step
from windlass.stores.plans import executions

AnsweringCall = Sequence[Answer]
"""The answers of one call, which are stored all or none."""


class StoredAnswers(NamedTuple):
    """What became of the answers of several calls."""

    calls: list[list[AnsweredWait]]
    work: frozenset[tuple[str, int]] = frozenset()
    """Queues and priority levels that have new work."""


def complete(dialect: Dialect, calls: Sequence[AnsweringCall]) -> Plan[StoredAnswers]:
    """Store the answers of several calls, and make what waits for them due."""
    answers = [answer for call in calls for answer in call]
    keys = sorted({answer.key for answer in answers})
    jobs = yield from _lock_jobs(dialect, keys)
    rows = yield Step("waits_of_answers", dialect.bulk("wait_keys", keys))
    decided = _decide(calls, {WaitKey(*row[:4]): KnownWait(*row) for row in rows})
    yield from _store(dialect, decided)
    chosen = [answer for answer, _, fate in decided.stored if fate is not AnswerFate.DUPLICATE]
    work: frozenset[tuple[str, int]] = frozenset()
    if chosen:
        ids = sorted({jobs[answer.key] for answer in chosen})
        woken = yield Step("wake_answered", {"ids": dialect.ids(ids)})
        work = frozenset((queue, priority) for queue, priority in woken)
    reached("answer.before_commit")
    return StoredAnswers(decided.calls, work)


def _lock_jobs(dialect: Dialect, keys: Sequence[WaitKey]) -> Plan[Mapping[WaitKey, str]]:
    """Lock the jobs that wait for answers, and return them; of those that have ended there is no row to lock."""
    jobs = yield from _jobs_of(dialect, keys)
    yield from executions.lock_mains(dialect, set(jobs.values()))
    if any(key.path for key in keys) and (yield from _jobs_of(dialect, keys)) != jobs:
        raise RestartPlanError  # an item's part has just got another job
    return jobs


def _jobs_of(dialect: Dialect, keys: Sequence[WaitKey]) -> Plan[dict[WaitKey, str]]:
    """Return the job that waits for each answer: that of the item's part, if it has one, else the main job."""
    ids = sorted({key.execution_id for key in keys if key.path})
    parts: dict[str, list[tuple[str, str, str]]] = {}
    if ids:
        for execution, lo, hi, job in (yield Step("parts_with_jobs", {"ids": dialect.ids(ids)})):
            parts.setdefault(execution, []).append((lo, hi, job))
    return {key: _job_of(key, parts.get(key.execution_id, ())) for key in keys}


def _job_of(key: WaitKey, parts: Sequence[tuple[str, str, str]]) -> str:
    at = bisect_right(parts, key.path, key=lambda part: part[0]) - 1 if key.path else -1
    return parts[at][2] if at >= 0 and key.path < parts[at][1] else key.execution_id


class _Decided(NamedTuple):
    calls: list[list[AnsweredWait]]
    stored: list[tuple[Answer, KnownWait, AnswerFate]]
    """The first answer to each wait, of calls whose answers are all accepted."""


def _decide(calls: Sequence[AnsweringCall], waits: Mapping[WaitKey, KnownWait]) -> _Decided:
    """Decide what becomes of the answers, one call after the other: the first one to a wait wins."""
    decided = _Decided([], [])
    first: dict[WaitKey, Answer] = {}
    for call in calls:
        fates: list[AnsweredWait] = []
        new: dict[WaitKey, tuple[Answer, KnownWait, AnswerFate]] = {}
        for answer in call:
            stored = waits.get(answer.key)
            known = first.get(answer.key) or (new[answer.key][0] if answer.key in new else None)
            if known is not None:
                fates.append(AnsweredWait(AnswerFate.DUPLICATE, known.type, known.value))
                continue
            fate = fate_of(answer, stored, is_open=stored is not None and stored.execution_status == OPEN)
            if fate is AnswerFate.DUPLICATE and stored is not None:
                fates.append(AnsweredWait(fate, stored.type, stored.answer))
                continue
            fates.append(AnsweredWait(fate, answer.type, answer.value))
            if stored is not None:
                new[answer.key] = (answer, stored, fate)
        decided.calls.append(fates)
        if all_accepted([one.fate for one in fates]):
            first.update({key: one[0] for key, one in new.items()})
            decided.stored.extend(new.values())
    return decided


def _store(dialect: Dialect, decided: _Decided) -> Plan[None]:
    """Write the chosen answers, and give them to their items."""
    for fate, statement in (
        (AnswerFate.STORED, "complete_external_waits"),
        (AnswerFate.EARLY, "keep_early_answers"),
    ):
        rows = [
            (*answer.key, answer.type, answer.value, answer.by, _deadline(answer, stored))
            for answer, stored, found in decided.stored
            if found is fate
        ]
        if rows and (yield Step(statement, dialect.bulk("given_answers", rows))) != len(rows):
            raise RestartPlanError
    items = [
        (answer.key.execution_id, stored.stage, answer.key.path, answer.key.step, answer.type, answer.value)
        for answer, stored, fate in decided.stored
        if answer.key.path and fate is AnswerFate.STORED
    ]
    if items:
        yield Step("give_answers", dialect.bulk("answered_items", items))


def _deadline(answer: Answer, stored: KnownWait) -> int:
    return stored.now + answer.timeout_us if answer.deadline is None else answer.deadline
