"""Plans for steps that wait for answers from outside: park, expire, close, list; and the keys of their tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from windlass.domain.external_wait import LastWait, NewWait, WaitKey
from windlass.runtime.failpoints import reached
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan, Step

STORED_KEY: Final = "store"
"""Id of the key that is made in the store."""
Levels = frozenset[tuple[str, int]]


class OpenWait(NamedTuple):
    """A wait as users list it."""

    execution_id: str
    step: int
    path: str
    round: int
    tenant: str
    pipeline: str
    pipeline_version: str
    definition_hash: str
    correlation_id: str
    request: str | None
    created_at: int
    deadline: int

    @property
    def key(self) -> WaitKey:
        """Its identity."""
        return WaitKey(*self[:4])


class AwaitedExecution(NamedTuple):
    """An execution that an answer is for."""

    id: str
    tenant: str
    pipeline: str
    pipeline_version: str
    definition_hash: str
    status: str


class WaitCount(NamedTuple):
    """How many waits of a pipeline are open, counted up to a limit, and a deadline of theirs."""

    pipeline: str
    number: int
    first_deadline: int | None


# ------------------------------------------------------------------ parking: the caller has locked the job that waits


def open_waits(dialect: Dialect, waits: Sequence[NewWait]) -> Plan[None]:
    """Store waits, whose items are parked already; answers that came before them are given to the items."""
    stored = yield Step("open_external_waits", dialect.bulk("new_waits", waits))
    if stored < len(waits):
        yield Step("note_requests", dialect.bulk("new_waits", waits))
        stages = {wait.key: wait.stage for wait in waits if wait.path}
        early = (yield Step("early_answers", dialect.bulk("wait_keys", sorted(stages)))) if stages else ()
        if early:
            items = [
                (execution, stages[WaitKey(execution, step, path, number)], path, step, *answer)
                for execution, step, path, number, *answer in early
            ]
            yield Step("give_answers", dialect.bulk("answered_items", items))
    reached("wait.before_park")


def park_values(dialect: Dialect, ids: Sequence[str]) -> Plan[Levels]:
    """Make executions with a single value due at their deadline, or at once if their answer came before."""
    rows = yield Step("park_values", {"ids": dialect.ids(ids)})
    return frozenset((queue, priority) for queue, priority, is_due in rows if is_due)


def wake_ready(dialect: Dialect, mains: Sequence[str], parts: Sequence[str], *, ordered: bool) -> Plan[Levels]:
    """Make jobs due that have parked while one of their items was answered; `ordered`: the first unended one."""
    work: Levels = frozenset()
    if mains:
        work |= _levels((yield Step("wake_ready_mains", {"ids": dialect.ids(mains), "ordered": int(ordered)})))
    if parts:
        work |= _levels((yield Step("wake_ready_parts", {"ids": dialect.ids(parts), "ordered": int(ordered)})))
    return work


def _levels(rows: Sequence[tuple[str, int]]) -> Levels:
    return frozenset((queue, priority) for queue, priority in rows)


def expire(dialect: Dialect, keys: Sequence[WaitKey]) -> Plan[frozenset[WaitKey]]:
    """Expire waits whose deadline has passed; return those that have expired, now or before. Others are answered."""
    rows = dialect.bulk("wait_keys", keys)
    yield Step("expire_external_waits", rows)
    return frozenset(WaitKey(*row) for row in (yield Step("expired_external_waits", rows)))


def close(dialect: Dialect, ids: Sequence[str]) -> Plan[None]:
    """Close the waits of executions that have ended: none can be answered any more."""
    yield Step("close_external_waits", {"ids": dialect.ids(sorted(ids))})


def begin_new_rounds(dialect: Dialect, execution_id: str, step: int, reached: int) -> Plan[None]:
    """Begin new rounds of waits at a step and after it, for an execution that starts over.

    It may have begun waits at steps up to `reached`: a body that failed, or whose process was killed, may have sent
    tokens although its wait was not stored. Answers to them concern values that the execution may no longer have.
    """
    del dialect
    first, last, following, redrives = yield Step("rounds_of_execution", {"id": execution_id, "step": step})
    asked_in = max(first, following if redrives > 1 else last)  # before its first re-drive nothing follows a closed one
    yield Step("begin_rounds", {"id": execution_id, "round": asked_in + 1, "reached": reached})
    yield Step("close_rounds_from", {"id": execution_id, "step": step})


# ------------------------------------------------------------------ reading


def last_rounds(dialect: Dialect, execution_id: str, step: int, first: str, last: str) -> Plan[dict[str, LastWait]]:
    """Return the last round of a step's waits by path, from one path to another."""
    del dialect
    params = {"id": execution_id, "step": step, "first": first, "last": last}
    rows = yield Step("rounds_of_step", params, autocommit=True)
    return {row[0]: LastWait(*row) for row in rows}


def next_pipeline(dialect: Dialect, after: str) -> Plan[str | None]:
    """Return the next pipeline with open waits, by name."""
    del dialect
    row = yield Step("next_awaiting_pipeline", {"after": after}, autocommit=True)
    return row[0] if row is not None and isinstance(row[0], str) else None  # damaged ones would come again and again


def pending(
    dialect: Dialect, tenant: str, pipeline: str, after: tuple[int, WaitKey], most: int
) -> Plan[list[OpenWait]]:
    """Return the next open waits of a tenant and pipeline, the first deadline first."""
    del dialect
    deadline, key = after
    start = {"deadline": deadline, "id": key.execution_id, "step": key.step, "path": key.path, "round": key.round}
    params = {"tenant": tenant, "pipeline": pipeline, **start}
    rows = yield Step("pending_waits", params, autocommit=True, literals={"window": most})
    return [OpenWait(*row) for row in rows]


def of_correlation(dialect: Dialect, tenant: str, correlation_id: str) -> Plan[list[WaitKey]]:
    """Return up to two waits with a correlation id: open ones, else completed ones of rounds that are not over."""
    del dialect
    for status in ("WAITING", "COMPLETED"):
        params = {"correlation_id": correlation_id, "status": status, "tenant": tenant}
        rows = yield Step("waits_of_correlation", params, autocommit=True)
        if rows:
            return [WaitKey(*row) for row in rows]
    return []


def executions_of(dialect: Dialect, ids: Sequence[str]) -> Plan[dict[str, AwaitedExecution]]:
    """Return the executions that answers are for; unknown ones are left out."""
    rows = yield Step("definitions_of_executions", {"ids": dialect.ids(ids)}, autocommit=True)
    return {row[0]: AwaitedExecution(*row) for row in rows}


def counts(dialect: Dialect, most: int) -> Plan[list[WaitCount]]:
    """Return how many waits are open, by pipeline; of each at most so many are counted."""
    found: list[WaitCount] = []
    name = yield from next_pipeline(dialect, "")
    while name is not None:
        row = yield Step("count_waits", {"pipeline": name}, autocommit=True, literals={"window": most})
        found.append(WaitCount(name, *row))
        name = yield from next_pipeline(dialect, name)
    return found


# ------------------------------------------------------------------ keys of tokens


def secrets(dialect: Dialect) -> Plan[list[tuple[str, str]]]:
    """Return the stored keys of tokens: ids and secrets."""
    del dialect
    return [(key_id, secret) for key_id, secret in (yield Step("secrets", autocommit=True))]


def make_secret(dialect: Dialect, secret: str) -> Plan[list[tuple[str, str]]]:
    """Store a key unless there is one, and return the stored ones: of several nodes at once, one makes it."""
    del dialect
    yield Step("keep_secret", {"key_id": STORED_KEY, "secret": secret})
    return [(key_id, stored) for key_id, stored in (yield Step("secrets"))]
