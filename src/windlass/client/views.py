"""Rows of the store as the values users see."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final, TypeVar
from uuid import UUID

import msgspec

from windlass.domain.clock import from_micros
from windlass.domain.cluster import Node, Queue, QueueHour
from windlass.domain.job import Attempt, Job
from windlass.domain.lanes import read_lane
from windlass.domain.limits import per_of
from windlass.domain.progress import LogLine, Progress, percent_of
from windlass.domain.states import LIVE, JobStatus
from windlass.domain.tags import tags_of
from windlass.stores.plans.progress_reports import LineRow
from windlass.stores.plans.queues import Depth
from windlass.stores.plans.reads import StoredJob
from windlass.stores.plans.statistics import Sums
from windlass.submission.error_text import short
from windlass.submission.stored_options import DEFAULTS, from_text

Arguments = Callable[[str, str], tuple[tuple[Any, ...], dict[str, Any]]]
Result = Callable[[str, str | None], Any]
T = TypeVar("T")

DAMAGED: Final = "(damaged)"
"""What stands for a value that cannot be read."""


def job_of(stored: StoredJob, arguments: Arguments, result: Result) -> Job:
    """A row of `get_job` as a `Job`."""
    (
        job_id, target, queue, status, priority, args_text, options, tags, params, correlation_id, idempotency_key,
        business_key, parent, created, fence, attempts, crashes, node, due, picked, paused_from,
        result_text, error, error_class, reason, superseded_by, started, finished, *progress, lane,
    ) = stored.row  # fmt: skip
    read = _Columns()
    state = read("status", JobStatus, status, JobStatus.PAUSED)
    live = state in LIVE
    last = stored.last_attempt if attempts or not live else None  # retried by hand: what was before is history
    last_error, last_class, wait_us, last_started, last_ended = last or (None,) * 5
    began = last_started if live else started
    return Job(
        id=read("id", UUID, job_id, UUID(int=0)),
        **_texts(read, target=target, queue=queue),
        status=state,
        **_numbers(read, priority=priority, attempts=attempts, crash_count=crashes),
        **_arguments(read, arguments, target, args_text),
        result=read("result", lambda text: result(target, text), result_text, DAMAGED),
        error_class=last_class if live else error_class,
        reason=reason,
        max_retries=read("options", from_text, options, DEFAULTS).max_retries,
        tags=read("tags", _tags, tags, (DAMAGED,)),
        params=read("params", _params, params, {DAMAGED: short(params)}),
        idempotency_key=idempotency_key,
        business_key=business_key,
        node=node,
        created_at=read("created_at", from_micros, created, from_micros(0)),
        **_moments(read, due_at=due, picked_at=picked, started_at=began, finished_at=finished),
        **_times(wait_us, last_started, last_ended),
        correlation_id=correlation_id,
        **_ids(read, parent_id=parent, superseded_by=superseded_by),
        paused_from=read("paused_from", _status, paused_from, None),
        version=_version(read("fence", _number, fence, 0), ended=not live or paused_from == JobStatus.FAILED),
        **_gates(lane),
        progress=read("progress", lambda said: _progress(*said), progress, None),
        error=read.told(last_error if live else error),  # last: it names what the lines above could not read
    )


class _Columns:
    """Reads columns one by one: what of a row is damaged hides neither the rest of it nor the rest of a page."""

    def __init__(self) -> None:
        self._damaged: list[str] = []

    def __call__(self, name: str, read: Callable[[Any], T], stored: Any, otherwise: T) -> T:
        try:
            return read(stored)
        except Exception:  # noqa: BLE001 - whatever is stored there, and whatever a user's serializer makes of it
            self._damaged.append(name)
            return otherwise

    def told(self, error: str | None) -> str | None:
        """A job's error; of a job without one, what of its row could not be read."""
        return error or (f"{DAMAGED} {', '.join(self._damaged)}" if self._damaged else None)


def _version(fence: int, *, ended: bool) -> int:
    """A number that grows with every change of state: all of them raise the fence, but for an end, which keeps it."""
    return 2 * fence + ended


def attempt_of(row: Sequence[Any]) -> Attempt:
    """A row of `history` as an `Attempt`."""
    number, node, picked, started, ended, wait_us, outcome, error_class, error, traceback = row
    if outcome == "canceled" and started is None:  # whoever cancels a job knows when it was claimed, and no more
        started = picked
    return Attempt(
        number=number,
        node=node,
        **_moments(_Columns(), picked_at=picked, started_at=started),
        ended_at=_Columns()("ended_at", from_micros, ended, from_micros(0)),
        wait_ms=_milliseconds(wait_us),
        run_ms=_span(started, ended),
        outcome=outcome,
        error_class=error_class,
        error=error,
        traceback=traceback,
    )


def line_of(row: LineRow) -> LogLine:
    """A row of `log_lines` as a `LogLine`."""
    return LogLine(
        attempt=row.attempt,
        number=row.number,
        at=from_micros(row.at),
        level=logging.getLevelName(row.level),
        logger=row.logger,
        text=row.text,
        fence=row.fence,
    )


def node_of(row: Sequence[Any]) -> Node:
    """A row of `list_nodes` as a `Node`."""
    node_id, host, pid, version, queues, started, heartbeat, alive, running = row
    return Node(
        id=node_id,
        host=host,
        pid=pid,
        version=version,
        queues=None if queues is None else tuple(filter(None, queues.split(","))),
        started_at=from_micros(started),
        heartbeat_at=from_micros(heartbeat),
        alive=bool(alive),
        running=running,
    )


def queue_of(depth: Depth) -> Queue:
    """A queue as users see it."""
    return Queue(
        name=depth.name,
        paused=depth.paused,
        waiting=depth.waiting,
        running=depth.running,
        oldest_due=_moment(depth.first_due),
        concurrency=depth.cap,
        rate=depth.rate,
        per=per_of(depth.per_us),
        last_hour=_hour_of(depth.last_hour),
    )


def _hour_of(sums: Sums) -> QueueHour:
    return QueueHour(
        succeeded=sums.succeeded,
        failed=sums.failed,
        retried=sums.retried,
        wait_ms=sums.wait_us // sums.runs // 1000 if sums.runs else None,
        run_ms=sums.run_us // sums.runs // 1000 if sums.runs else None,
    )


def _gates(lane: str | None) -> dict[str, Any]:
    waits = read_lane(lane)
    return {"resource": waits.resource, "circuit": waits.circuit}


def _times(wait_us: int | None, started: int | None, ended: int | None) -> dict[str, Any]:
    return {"wait_ms": _milliseconds(wait_us), "run_ms": _span(started, ended)}


def _progress(done: float | None, total: float | None, message: str, at: int) -> Progress | None:
    if done is None:
        return None
    return Progress(
        done=_plain(done),
        total=None if total is None else _plain(total),
        message=message,
        at=from_micros(at),
        percent=percent_of(done, total),
    )


def _plain(number: float) -> float:
    """3 rather than 3.0: what is counted is whole, though it is stored like everything else."""
    return int(number) if number.is_integer() else number


def _moment(value: int | None) -> datetime | None:
    return None if value is None else from_micros(value)


def _milliseconds(value: int | None) -> int | None:
    return value // 1000 if isinstance(value, int) else None


def _span(start: int | None, end: int | None) -> int | None:
    return max(end - start, 0) // 1000 if isinstance(start, int) and isinstance(end, int) else None


def _ids(read: _Columns, **values: str | None) -> dict[str, Any]:
    return {name: None if value is None else read(name, UUID, value, None) for name, value in values.items()}


def _arguments(read: _Columns, arguments: Arguments, target: str, stored: str) -> dict[str, Any]:
    as_stored: tuple[tuple[Any, ...], dict[str, Any]] = ((stored,), {})
    args, kwargs = read("args", lambda text: arguments(target, text), stored, as_stored)
    return {"args": args, "kwargs": kwargs}


def _texts(read: _Columns, **values: str) -> dict[str, Any]:
    return {name: read(name, _text, value, DAMAGED) for name, value in values.items()}


def _numbers(read: _Columns, **values: int) -> dict[str, Any]:
    return {name: read(name, _number, value, 0) for name, value in values.items()}


def _moments(read: _Columns, **values: int | None) -> dict[str, Any]:
    return {name: read(name, _moment, value, None) for name, value in values.items()}


def _status(value: str | None) -> JobStatus | None:
    return None if value is None else JobStatus(value)


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    raise TypeError(value)


def _number(value: object) -> int:
    if isinstance(value, int):
        return value
    raise TypeError(value)


def _tags(text: str | None) -> tuple[str, ...]:
    found = tags_of(text)
    if text and not found:
        raise ValueError(text)
    return found


def _params(text: str | None) -> dict[str, Any]:
    return msgspec.json.decode(text, type=dict[str, Any]) if text else {}
