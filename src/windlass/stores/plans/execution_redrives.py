"""Plans that start dead executions over: from where they failed, or from an earlier step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from windlass.domain.ended import Effects
from windlass.domain.execution import DEAD, OPEN, ExecutionStatus, LogRow
from windlass.domain.identity import new_job_id
from windlass.execution_errors import ExecutionNotFoundError, ExecutionStateError, StaleVersionError
from windlass.runtime.failpoints import reached
from windlass.stores.dialect import Dialect, json_text
from windlass.stores.ending import FollowUps, MovedJobs, end_canceled
from windlass.stores.plan import Plan, Step
from windlass.stores.plans import executions, external_waits, items, moves

EVERY_STEP: Final = 9_999
"""Behind every step that an interaction id can name."""


class Rewind(NamedTuple):
    """Where an execution starts over, if not where it failed."""

    step: int
    stage: int | None = None
    """The stage that is complete there; None: the value is a single one."""
    reached: int = EVERY_STEP
    """The last step that items may have reached."""


class OtherVersion(NamedTuple):
    """The version of the pipeline that an execution is moved to."""

    version: str
    hash: str
    target: str
    lane: str | None
    awaits: int = 0
    """1: it has steps that wait for answers from outside."""
    reached: int = EVERY_STEP
    """The last step that items may have reached in the version before."""


def reopen(dialect: Dialect, ids: Sequence[str], *, reset: bool) -> Plan[None]:
    """Open executions whose main jobs this transaction has started over; their failed items are ready again."""
    params = {"ids": dialect.ids(sorted(ids)), "reset": int(reset)}
    rows = yield Step("reopen_executions", params)
    logged = []
    for execution, version, cursor, attempt, stage, streams, filled in rows:
        logged.append((execution, version, *_log(LogRow("redriven", cursor, attempt), stage)))
        if streams or filled:  # an item may have failed while its expansion went on
            yield Step("revive_items", {"id": execution, "stage": stage, "reset": int(reset)})
            yield Step("detach_parts", {"id": execution})
    if logged:
        yield Step("insert_transitions", dialect.bulk("log_rows", logged))
    reached("redrive.before_commit")


def _log(log: LogRow, stage: int) -> tuple[object, ...]:
    return (log.kind, log.step, log.attempt, stage, None, None, *log[3:])


def redrive(
    dialect: Dialect,
    execution_id: str,
    tenant: str | None,
    expected_version: int | None,
    rewind: Rewind | None,
    moved: OtherVersion | None,
    follow_ups: FollowUps,
    *,
    reset: bool = True,
    note: str = "",
) -> Plan[MovedJobs]:
    """Start one dead execution over. A stale version or a wrong status is an error, and nothing is changed."""
    row = yield Step("execution_version", {"id": execution_id})
    if row is None or (tenant is not None and row[0] != tenant):
        raise ExecutionNotFoundError(execution_id, tenant or "any")
    _, status, version, awaits, cursor, has_items = row
    _check(execution_id, status, version, expected_version, stranded=moved is not None)
    if status != OPEN and not reset:  # before the follow-up of the retry, which then finds it open
        yield Step("lock_ended", {"ids": dialect.ids([execution_id])})
        yield from reopen(dialect, [execution_id], reset=False)
    if status == OPEN:
        started = yield from _give_up_parts(dialect, execution_id, follow_ups)
    else:
        started = yield from moves.retry(dialect, [execution_id], follow_ups)
    if status != OPEN and not started.ended:
        raise ExecutionStateError(f"execution {execution_id} could not be started over: its job is no dead letter")
    if rewind is not None:
        yield from _rewind(execution_id, rewind)
    other = moved or rewind
    if awaits and other is not None:  # answers have types of the version that began the wait
        step, last = 0 if moved is not None or rewind is None else rewind.step, other.reached if has_items else cursor
        yield from external_waits.begin_new_rounds(dialect, execution_id, step, last)
    if note:
        yield Step("save_audit", _audit(execution_id, note))
    if moved is not None:
        yield from _move(dialect, execution_id, moved, awaits=awaits)
    if status == OPEN:
        work = yield from executions.wake(dialect, [execution_id])
        started = started._replace(effects=started.effects | Effects(work=work))
    return started


def _move(dialect: Dialect, execution_id: str, moved: OtherVersion, *, awaits: int) -> Plan[None]:
    """Move an execution to another version."""
    params = {"id": execution_id, "version": moved.version, "hash": moved.hash, "awaits": moved.awaits}
    yield Step("move_execution", params)
    yield Step("retarget_job", {"id": execution_id, "target": moved.target})
    yield Step("retarget_hot", {"id": execution_id, "target": moved.target, "lane": moved.lane})
    if awaits:
        yield Step("ready_outside_items", {"id": execution_id})
        yield Step("wake_answered", {"ids": dialect.ids([execution_id])})


def _give_up_parts(dialect: Dialect, execution_id: str, follow_ups: FollowUps) -> Plan[MovedJobs]:
    """Cancel the jobs of an open execution's parts, which are of the version before; its next claim makes others."""
    yield from executions.lock_mains(dialect, [execution_id])
    jobs = yield from items.live_jobs(dialect, [execution_id])
    if not jobs:
        return MovedJobs([])
    stopped = yield from moves.cancel(dialect, jobs, reason="execution_moved", parts=True)
    yield from items.detach(dialect, execution_id)
    effects = Effects(canceled=tuple(job._replace(in_cascade=True) for job in stopped.ended))
    return MovedJobs([], (yield from end_canceled(dialect, effects, follow_ups)))


def _audit(execution_id: str, note: str) -> dict[str, object]:
    detail = json_text({"execution": execution_id, "note": note})
    return {"id": new_job_id(), "principal": "", "action": "executions.redrive", "affected": 1, "detail": detail}


def _check(execution_id: str, status: str, version: int, expected: int | None, *, stranded: bool) -> None:
    if expected is not None and version != expected:
        raise StaleVersionError(execution_id, expected, version)
    allowed = {one.value for one in DEAD} | ({OPEN} if stranded else set())
    if status not in allowed:
        shown = "open" if status == OPEN else status
        raise ExecutionStateError(
            f"execution {execution_id} is {shown}; only one that is {ExecutionStatus.DLQ} or {ExecutionStatus.FAILED} "
            "can be re-driven"
        )


def _rewind(execution_id: str, rewind: Rewind) -> Plan[None]:
    """Go back to an earlier step, with the value that it had."""
    version = 0
    if rewind.stage is None:
        row = yield Step("value_before_step", {"id": execution_id, "step": rewind.step})
        version = 0 if row is None else row[0]
    stage = yield Step("last_stage", {"id": execution_id})
    params: Mapping[str, object] = {
        "id": execution_id,
        "cursor": rewind.step,
        "value_version": version,
        "stage": stage[0] if rewind.stage is None else rewind.stage,
        "streams": int(rewind.stage is not None),
    }
    yield Step("rewind_execution", params)
    yield Step("drop_parts", {"id": execution_id})
