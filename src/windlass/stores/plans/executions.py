"""Plans for executions of pipelines: load, and what a claim writes at the boundaries of steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from windlass.domain.ended import NO_EFFECTS, Effects
from windlass.domain.execution import OPEN, ExecutionState, LogRow
from windlass.domain.execution_items import ItemWrite, NewItem, NewPart, NewReject
from windlass.domain.external_wait import NewWait, WaitKey
from windlass.runtime.failpoints import reached
from windlass.stores.dialect import Dialect, json_text
from windlass.stores.plan import Plan, Step
from windlass.stores.plans import external_waits, items, rejects
from windlass.stores.plans.items import Release


def load(dialect: Dialect, ids: Sequence[str]) -> Plan[dict[str, ExecutionState]]:
    """Return executions with their present values, many at once."""
    rows = yield Step("load_executions", {"ids": dialect.ids(ids)}, autocommit=True)
    return {row[0]: ExecutionState(*row) for row in rows}


class Checkpoint(NamedTuple):
    """What a claim of a main job or a part writes while it holds its claim."""

    job_id: str
    fence: int
    execution_id: str
    mark: str = ""
    """Identifies the write of an execution's state."""
    state: ExecutionState | None = None
    """The execution's new state, with its value if `has_value`; None: it is not changed."""
    has_value: bool = False
    keeps_position: bool = False
    """Whether the position in items is not written: of a failed try a chunk may be stored without its claim knowing."""
    log: LogRow | None = None
    """Log row of the new state."""
    items: Sequence[ItemWrite] = ()
    new_items: Sequence[NewItem] = ()
    new_parts: Sequence[NewPart] = ()
    rejects: Sequence[NewReject] = ()
    trying: str | None = None
    """The item that a part runs alone, after a crash."""
    release: Release | None = None
    """Makes jobs of parts that wait."""
    readies: tuple[str, str, int] | None = None
    """Items that have passed a segment and are given to the next one: after a path, up to another, at a step."""
    clears_failing: int | None = None
    """The stage whose failure does not end the execution; None: nothing is cleared."""
    node: str | None = None
    waits: Sequence[NewWait] = ()
    """Waits for answers from outside that begin: of the items that are written, or of the execution itself."""
    expires: Sequence[WaitKey] = ()
    """Waits whose deadline has passed."""
    publish: Callable[[Dialect], Plan[Effects]] | None = None
    """Hands a chunk of last items over, in the same transaction, if the state is written."""

    @property
    def writes_more(self) -> bool:
        """Whether it writes more than the state of its execution."""
        rows = self.items or self.new_items or self.new_parts or self.rejects or self.waits or self.expires
        return bool(rows or self.release) or (
            (self.trying, self.readies, self.clears_failing, self.publish) != (None, None, None, None)
        )


class CheckpointAnswer(NamedTuple):
    """The answer to a checkpoint."""

    held: bool
    """Whether the claim was held; if not, nothing was written."""
    row_version: int = 0
    """Row version of the execution, if its state was written."""
    status: str = OPEN
    paused: bool = False
    failing: str | None = None
    new_work: frozenset[tuple[str, int]] = frozenset()
    new_rejects: frozenset[str] = frozenset()
    """Ids of rejects that were not stored before, of all writes of its batch."""
    expired: frozenset[WaitKey] = frozenset()
    """Waits that have expired, of all writes of its batch; the others were answered."""
    calls: tuple[Callable[[], None], ...] = ()
    """What to do after the commit."""


def checkpoint(dialect: Dialect, writes: Sequence[Checkpoint]) -> Plan[list[CheckpointAnswer]]:
    """Write what claims have finished, each under its fence; each answer contains the requests of others."""
    claims = sorted({one[:3] for one in writes})  # job, fence and execution
    numbered = [(number, *claim) for number, claim in enumerate(claims)]
    rows = yield Step("lock_pipeline_claims", dialect.bulk("pipeline_claims", numbered))
    locked = {claims[number]: facts for number, *facts in rows}
    held = [one for one in writes if one[:3] in locked]
    if not held:
        return [CheckpointAnswer(held=False) for _ in writes]
    if any(crashes for crashes, *_ in locked.values()):
        progress = {one[:3] for one in held if one.state is not None or one.items}
        crashed = sorted({claim[0] for claim in progress if locked[claim][0]})
        if crashed:
            yield Step("clear_crashes", {"ids": dialect.ids(crashed)})
    states = [one for one in held if one.state is not None]
    versions = yield from advance(dialect, states, final=not any(one.writes_more for one in held))
    effects = yield from _write_items(dialect, held)
    reached("checkpoint.written")
    handed = NO_EFFECTS
    for one in held:
        if one.publish is not None and one.execution_id in versions:  # else it was committed before
            handed |= yield from one.publish(dialect)
    reached("checkpoint.before_commit")
    answers = [_answer(one, locked.get(one[:3]), versions, effects) for one in writes]
    if handed is NO_EFFECTS:
        return answers
    return [answers[0]._replace(new_work=answers[0].new_work | handed.work, calls=handed.calls), *answers[1:]]


def _answer(
    one: Checkpoint, facts: Sequence[Any] | None, versions: Mapping[str, int], effects: _ItemEffects
) -> CheckpointAnswer:
    if facts is None:
        return CheckpointAnswer(held=False)
    _, status, paused, failing = facts
    version = versions.get(one.execution_id, 0)
    return CheckpointAnswer(True, version, status, bool(paused), failing, *effects)


def advance(dialect: Dialect, writes: Sequence[Checkpoint], *, final: bool = False) -> Plan[dict[str, int]]:
    """Write the states of executions and their log; return their versions, but of those that were written before."""
    if not writes:
        return {}
    by_id = {one.execution_id: one for one in writes}
    versions: dict[str, int] = {}
    for keeps, name, table in _ADVANCES:
        rows = [_advance_row(one, one.state) for one in writes if one.state is not None and one.keeps_position is keeps]
        if rows:
            versions |= yield Step(name, dialect.bulk(table, rows))
    logged = [
        log_row(execution, version, one.log, one.state.stage, one.node, one.fence)
        for execution, version in versions.items()
        if (one := by_id[execution]).log is not None and one.state is not None
    ]
    if logged:
        yield Step("insert_transitions", dialect.bulk("log_rows", logged), final=final)
    return versions


_ADVANCES = ((True, "advance_executions", "execution_advances"), (False, "advance_stages", "stage_advances"))


def _advance_row(one: Checkpoint, state: ExecutionState) -> tuple[object, ...]:
    row = (one.execution_id, one.mark, state.cursor, state.attempt, int(one.has_value))
    if one.keeps_position:
        return row
    return *row, state.stage, state.streams, state.filled, state.emitted, state.last_hash, state.cut


def log_row(
    execution: str, version: int, log: LogRow | None, stage: int, node: str | None, fence: int | None = None
) -> tuple[object, ...]:
    """Return a row of the log, as `insert_transitions` takes it."""
    assert log is not None
    return (execution, version, log.kind, log.step, log.attempt, stage, node, fence, *log[3:])


class _ItemEffects(NamedTuple):
    work: frozenset[tuple[str, int]]
    new_rejects: frozenset[str]
    expired: frozenset[WaitKey]


def _write_items(dialect: Dialect, held: Sequence[Checkpoint]) -> Plan[_ItemEffects]:
    written = [item for one in held for item in one.items]
    new = [item for one in held for item in one.new_items]
    parts = [part for one in held for part in one.new_parts]
    given = [reject for one in held for reject in one.rejects]
    releases = [one.release for one in held if one.release is not None]
    waits = [wait for one in held for wait in one.waits]
    expires = [key for one in held for key in one.expires]
    for one in held:
        if one.clears_failing is not None:
            yield Step("clear_failing", {"id": one.execution_id})
            yield Step("ready_failed_items", {"id": one.execution_id, "stage": one.clears_failing})
        if one.readies is not None and one.state is not None:
            after, last, cursor = one.readies
            where = {"id": one.execution_id, "stage": one.state.stage}
            yield Step("ready_items", {**where, "after": after, "last": last, "cursor": cursor})
        if one.trying is not None:
            yield Step("set_trying", {"job_id": one.job_id, "trying": one.trying})
    if written:
        more = new or parts or given or releases or waits or expires or any(one.publish is not None for one in held)
        yield from items.write(dialect, written, final=not more)
    if waits:
        yield from external_waits.open_waits(dialect, waits)
    expired = (yield from external_waits.expire(dialect, expires)) if expires else frozenset()
    if new:
        yield Step("insert_items", dialect.bulk("new_items", new))
    if parts:
        yield Step("insert_parts", {"rows": json_text(parts)})
    new_rejects = (yield from rejects.store(dialect, given)) if given else frozenset()
    work = (yield from items.release(dialect, releases)) if releases else frozenset()
    return _ItemEffects(work, new_rejects, expired)


class EndedExecution(NamedTuple):
    """An execution whose main job has just ended."""

    id: str
    status: str
    """SUCCEEDED, FAILED (DLQ, if it has a dead letter) or CANCELED."""
    transition_key: str | None = None
    error_code: str | None = None
    error_message: str | None = None
    fence: int | None = None
    log: LogRow | None = None
    """None: from what is stored."""
    node: str | None = None


def finish(dialect: Dialect, ended: Sequence[EndedExecution]) -> Plan[None]:
    """End executions, in the transaction that ends their main jobs."""
    found = yield Step("end_executions", {"rows": json_text([one[:5] for one in ended])})
    by_id = {one.id: one for one in ended}
    logged = []
    awaiting = [row[0] for row in found if row[5] and by_id[row[0]].status != "SUCCEEDED"]
    if awaiting:
        yield from external_waits.close(dialect, awaiting)
    for execution, version, cursor, attempt, stage, _ in found:
        one = by_id[execution]
        log = one.log or LogRow("ended", cursor, attempt, None, one.error_code, one.error_message)
        logged.append(log_row(execution, version, log, stage, one.node, one.fence))
    if logged:
        yield Step("insert_transitions", dialect.bulk("log_rows", logged))


def wake(dialect: Dialect, ids: Iterable[str]) -> Plan[frozenset[tuple[str, int]]]:
    """Make executions due that wait for nothing any more; the caller has locked their main jobs."""
    rows = yield Step("wake_mains", {"ids": dialect.ids(sorted(ids))})
    return frozenset((queue, priority) for queue, priority in rows)


def wake_unpaused(dialect: Dialect, ids: Sequence[str]) -> Plan[frozenset[tuple[str, int]]]:
    """Make executions due that wait to be resumed, and are not paused; return their levels."""
    rows = yield Step("wake_unpaused", {"ids": dialect.ids(ids)})
    return frozenset((queue, priority) for queue, priority in rows)


def note_failing(_: Dialect, execution: str, failing: str) -> Plan[None]:
    """Note the failure of an item, which the claim of its execution decides about."""
    yield Step("note_failing", {"id": execution, "failing": failing})


def lock_mains(dialect: Dialect, ids: Iterable[str]) -> Plan[list[str]]:
    """Lock the main jobs of executions; return those that are there."""
    rows = yield Step("lock_mains", {"ids": dialect.ids(sorted(ids))})
    return [row[0] for row in rows]


def save_pipelines(dialect: Dialect, rows: Sequence[Mapping[str, str]]) -> Plan[None]:
    """Store definitions that a node has."""
    del dialect
    yield Step("save_pipeline", rows=rows)
