"""Plans that store new executions, by their keys: each once."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from windlass.domain.execution import KnownExecution, LogRow, NewExecution
from windlass.domain.job import NewJob
from windlass.runtime.failpoints import reached
from windlass.stores.dialect import Dialect, json_text
from windlass.stores.plan import Plan, RestartPlanError, Step
from windlass.stores.plans.executions import log_row


class SubmittedExecution(NamedTuple):
    """The result of submitting one execution."""

    id: str
    duplicate: bool = False
    conflict: bool = False
    """Whether an execution with the same key has another input; nothing was stored then."""


class NewSubmission(NamedTuple):
    """An execution, and the job that runs it."""

    execution: NewExecution
    job: NewJob
    log: LogRow = LogRow("submitted", 0, 1)
    """The first row of its log; of a re-driven reject it holds the item."""


def submit(
    dialect: Dialect, new: Sequence[NewSubmission], new_queues: Sequence[str], notification: str | None = None
) -> Plan[list[SubmittedExecution]]:
    """Store executions, all or none; return the answer to each. With a conflict among them, nothing is stored."""
    if new_queues:
        yield Step("insert_queue", rows=[{"name": name} for name in new_queues])
    answers = yield from known(dialect, [one.execution for one in new])
    stored = [one for one, answer in zip(new, answers, strict=True) if answer.id == one.execution.id]
    if stored and not any(answer.conflict for answer in answers):
        yield from _store(dialect, stored, notification)
    reached("submit.before_commit")
    return answers


def fresh_of(
    chosen: Mapping[str, tuple[SubmittedExecution, NewSubmission]], stored: Collection[str]
) -> list[NewSubmission]:
    """Return the executions to store for the hand-offs that were stored, of those chosen.

    Several items may be one execution (`SERVER_KEY`), and the first of them need not be among those stored: then the
    execution is made of the next one, under the id that they all have.
    """
    own = {submission.execution.id for _, submission in chosen.values()}
    fresh: dict[str, NewSubmission] = {}
    for handoff_id, (answer, made) in chosen.items():
        if handoff_id in stored and not answer.conflict and answer.id in own and answer.id not in fresh:
            execution, job = made.execution._replace(id=answer.id), made.job._replace(id=answer.id)
            fresh[answer.id] = made._replace(execution=execution, job=job)
    return list(fresh.values())


def store_fresh(
    dialect: Dialect, new: Sequence[NewSubmission], known_queues: Collection[str]
) -> Plan[frozenset[tuple[str, int]]]:
    """Store executions that are no duplicates, within other writes; return the levels that have new work."""
    if not new:
        return frozenset()
    if new_queues := sorted({one.job.queue for one in new}.difference(known_queues)):
        yield Step("insert_queue", rows=[{"name": name} for name in new_queues])
    yield from _store(dialect, new, None)
    return frozenset((one.job.queue, one.job.priority) for one in new)


def _store(dialect: Dialect, stored: Sequence[NewSubmission], notification: str | None) -> Plan[None]:
    count = yield Step("insert_executions", {"rows": json_text([one.execution for one in stored])})
    if count != len(stored):
        raise RestartPlanError  # another transaction has just taken a key
    yield from dialect.insert_jobs([one.job for one in stored], alone=False, notification=notification)
    rows = [log_row(one.execution.id, 1, one.log, 0, None) for one in stored]
    yield Step("insert_transitions", dialect.bulk("log_rows", rows))


def known(dialect: Dialect, new: Sequence[NewExecution]) -> Plan[list[SubmittedExecution]]:
    """Return the answers to new executions, of which those with other ids are there already; nothing is stored."""
    del dialect
    keyed = sorted({_key(one) for one in new if one.key is not None})
    holders: dict[tuple[str, ...], KnownExecution] = {}
    if keyed:
        found = yield Step("find_executions_of_keys", {"rows": json_text(keyed)})
        same = {(one.tenant, one.key or ""): _key(one) for one in new if one.key is not None}
        holders = {same[tenant, row[1]]: KnownExecution(*row) for tenant, *row in found}
    answers = []
    for one in new:
        holder = holders.get(_key(one)) if one.key is not None else None
        if holder is None:
            if one.key is not None:
                holders[_key(one)] = KnownExecution(one.id, one.key, one.input_hash)
            answers.append(SubmittedExecution(one.id))
        else:
            answers.append(SubmittedExecution(holder.id, duplicate=True, conflict=holder.input_hash != one.input_hash))
    return answers


def _key(one: NewExecution) -> tuple[str, str, str, str]:
    return one.tenant, one.pipeline, one.pipeline_version, one.key or ""
