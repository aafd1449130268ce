"""Plans that read executions for users: one, pages of them, their logs and their parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan, Step


class StoredExecution(NamedTuple):
    """An execution as it is stored, with the state of its job."""

    id: str
    tenant: str
    key: str | None
    pipeline: str
    pipeline_version: str
    definition_hash: str
    status: str
    row_version: int
    cursor: int
    attempt: int
    transition_key: str | None
    error_code: str | None
    error_message: str | None
    rejected: int
    paused: int
    created_at: int
    updated_at: int
    job_status: str | None
    """None once its job has ended."""
    due: int | None
    lease_until: int | None
    args: str | None
    result: str | None
    correlation_id: str | None
    target: str | None
    outside_until: int | None = None
    """The first deadline of its waits for answers from outside; None: there are none."""


class PartState(NamedTuple):
    """A part of an open execution that has a job."""

    status: str
    due: int | None
    lease_until: int | None


class FoundExecution(NamedTuple):
    """An execution with its parts."""

    stored: StoredExecution
    parts: Sequence[PartState]
    now: int


class StoredTransition(NamedTuple):
    """A row of the log."""

    version: int
    at: int
    kind: str
    step: int
    attempt: int
    stage: int
    node: str | None
    fence: int | None
    run_us: int | None
    error_class: str | None
    error: str | None
    type: int | None
    value: str | None


class ExecutionFacts(NamedTuple):
    """What a dead letter contains about its execution."""

    id: str
    tenant: str
    pipeline: str
    key: str | None
    definition_hash: str
    cursor: int
    attempt: int
    dlq: int


def facts(dialect: Dialect, ids: Sequence[str]) -> Plan[dict[str, ExecutionFacts]]:
    """Return the facts of executions that fail in this transaction, which holds the locks of their main jobs."""
    rows = yield Step("facts_of_executions", {"ids": dialect.ids(ids)})
    return {row[0]: ExecutionFacts(*row) for row in rows}


def get(dialect: Dialect, ids: Sequence[str]) -> Plan[dict[str, FoundExecution]]:
    """Return executions by their ids; unknown ones are left out."""
    rows = yield Step("get_executions", {"ids": dialect.ids(ids)}, autocommit=True)
    return {one.stored.id: one for one in (yield from _with_parts(dialect, rows))}


def find(dialect: Dialect, tenant: str, pipeline: str | None, before: str, most: int) -> Plan[list[FoundExecution]]:
    """Return the next executions of a tenant, newest first."""
    params: dict[str, Any] = {"tenant": tenant, "before": before}
    name = "find_executions"
    if pipeline is not None:
        params["pipeline"], name = pipeline, "find_executions_of_pipeline"
    rows = yield Step(name, params, autocommit=True, literals={"window": most})
    return (yield from _with_parts(dialect, rows))


def stranded(dialect: Dialect, pipeline: str, version: str, hash_: str, most: int) -> Plan[list[FoundExecution]]:
    """Return open executions of a version whose definition differs."""
    params = {"pipeline": pipeline, "version": version, "hash": hash_}
    rows = yield Step("open_of_hash", params, autocommit=True, literals={"window": most})
    return (yield from _with_parts(dialect, rows))


def _with_parts(dialect: Dialect, rows: Sequence[Sequence[Any]]) -> Plan[list[FoundExecution]]:
    found = [StoredExecution(*row) for row in rows]
    waiting = [one.id for one in found if one.job_status == "PENDING" and one.due is None]
    parts: dict[str, list[PartState]] = {}
    if waiting:
        for execution, *state in (yield Step("part_states", {"ids": dialect.ids(waiting)}, autocommit=True)):
            parts.setdefault(execution, []).append(PartState(*state))
    now = (yield Step("store_now", autocommit=True))[0]
    return [FoundExecution(one, parts.get(one.id, ()), now) for one in found]


def transitions(dialect: Dialect, execution_id: str, after: int, most: int) -> Plan[list[StoredTransition]]:
    """Return the next rows of an execution's log."""
    del dialect
    params = {"id": execution_id, "after": after}
    rows = yield Step("transitions_of", params, autocommit=True, literals={"window": most})
    return [StoredTransition(*row) for row in rows]


def pipelines(dialect: Dialect) -> Plan[list[Mapping[str, Any]]]:
    """Return the definitions that nodes have had."""
    del dialect
    rows = yield Step("pipelines", autocommit=True)
    return [dict(zip(("name", "version", "hash", "definition", "seen_at"), row, strict=True)) for row in rows]
