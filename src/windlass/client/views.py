"""Conversion of rows of the store to public values."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

import msgspec

from windlass.domain.clock import from_micros
from windlass.domain.cluster import Node, Queue, QueueHour
from windlass.domain.ended import DAMAGED
from windlass.domain.job import Attempt, Job
from windlass.domain.lanes import read_lane
from windlass.domain.limits import per_of
from windlass.domain.progress import LogLine, Progress, percent_of
from windlass.domain.signal import deadline_or_none
from windlass.domain.states import LIVE, JobStatus
from windlass.domain.tags import tags_of
from windlass.errors import SerializationError
from windlass.stores.columns import LAST_ATTEMPT
from windlass.stores.plans.progress_reports import LineRow
from windlass.stores.plans.queues import Depth
from windlass.stores.plans.reads import Record, StoredJob
from windlass.stores.plans.statistics import QueueTotals
from windlass.submission.error_text import short
from windlass.submission.stored_options import DEFAULTS, StoredFlow, from_text
from windlass.submission.templates import shown

Arguments = Callable[[str, str], tuple[tuple[Any, ...], dict[str, Any]]]
Result = Callable[[str, str | None], Any]
T = TypeVar("T")


def job_of(stored: StoredJob, arguments: Arguments, result: Result) -> Job:
    """Return a row of `get_job` as a `Job`."""
    row = stored.job
    read = _ColumnReader()
    state = read("status", JobStatus, row["status"], JobStatus.PAUSED)
    live = state in LIVE
    last = stored.last_attempt if row["attempts"] or not live else None  # retried by hand: earlier failures are history
    latest: Record = last or dict.fromkeys(LAST_ATTEMPT)
    outcome = latest if live else row
    return Job(
        id=read("id", UUID, row["id"], UUID(int=0)),
        **_texts(read, target=row["target"], queue=row["queue"]),
        status=state,
        **_numbers(read, priority=row["priority"], attempts=row["attempts"], crash_count=row["crash_count"]),
        **_arguments(read, arguments, row),
        result=read("result", lambda text: result(row["target"], text), row["result"], DAMAGED),
        error_class=outcome["error_class"],
        reason=row["reason"],
        max_retries=read("options", from_text, row["options"], DEFAULTS).max_retries,
        tags=read("tags", _tags, row["tags"], (DAMAGED,)),
        params=read("params", _params, row["params"], {DAMAGED: short(row["params"])}),
        idempotency_key=row["idempotency_key"],
        business_key=row["business_key"],
        node=row["node"],
        created_at=read("created_at", from_micros, row["created_at"], from_micros(0)),
        **_moments(read, due_at=deadline_or_none(row["due"]), picked_at=row["picked_at"]),
        **_moments(read, started_at=outcome["started_at"], finished_at=row["finished_at"]),
        wait_ms=_milliseconds(latest["wait_us"]),
        run_ms=_span(latest["started_at"], latest["ended_at"]),
        correlation_id=row["correlation_id"],
        **_ids(read, parent_id=row["parent_id"], batch_id=row["batch_id"], superseded_by=row["superseded_by"]),
        paused_from=read("paused_from", _status, row["paused_from"], None),
        version=_version(
            read("fence", _number, row["fence"], 0), ended=not live or row["paused_from"] == JobStatus.FAILED
        ),
        **_gates(row["lane"]),
        progress=read("progress", _progress, row, None),
        error=read.error_text(outcome["error"]),  # last: it names what the lines above could not read
    )


class _ColumnReader:
    """Reads columns one by one, so that a damaged value hides neither the rest of its row nor of a page."""

    def __init__(self) -> None:
        self._damaged: list[str] = []

    def __call__(self, name: str, read: Callable[[Any], T], stored: Any, otherwise: T) -> T:
        try:
            return read(stored)
        except Exception:  # noqa: BLE001 - whatever is stored there, and whatever a user's serializer makes of it
            self._damaged.append(name)
            return otherwise

    def error_text(self, error: str | None) -> str | None:
        """Return a job's error; for a job without one, what of its row could not be read."""
        return error or (f"{DAMAGED} {', '.join(self._damaged)}" if self._damaged else None)


def _version(fence: int, *, ended: bool) -> int:
    """Return a number that grows with every change of state: all raise the fence, except for an end."""
    return 2 * fence + ended


def attempt_of(row: Record) -> Attempt:
    """Return a row of `history` as an `Attempt`."""
    picked, started, ended = row["picked_at"], row["started_at"], row["ended_at"]
    if row["outcome"] == "canceled" and started is None:  # a cancel knows only when the job was claimed
        started = picked
    return Attempt(
        number=row["number"],
        node=row["node"],
        **_moments(_ColumnReader(), picked_at=picked, started_at=started),
        ended_at=_ColumnReader()("ended_at", from_micros, ended, from_micros(0)),
        wait_ms=_milliseconds(row["wait_us"]),
        run_ms=_span(started, ended),
        outcome=row["outcome"],
        error_class=row["error_class"],
        error=row["error"],
        traceback=row["traceback"],
    )


def line_of(row: LineRow) -> LogLine:
    """Return a row of `log_lines` as a `LogLine`."""
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
    """Return a row of `list_nodes` as a `Node`."""
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
    """Return a queue as users see it."""
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


def _hour_of(sums: QueueTotals) -> QueueHour:
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


def _progress(row: Record) -> Progress | None:
    done, total = row["progress_done"], row["progress_total"]
    if done is None:
        return None
    return Progress(
        done=_plain(done),
        total=None if total is None else _plain(total),
        message=row["progress_message"],
        at=from_micros(row["progress_at"]),
        percent=percent_of(done, total),
    )


def _plain(number: float) -> float:
    """Return 3 rather than 3.0: counts are whole, though they are stored like other numbers."""
    return int(number) if number.is_integer() else number


def _moment(value: int | None) -> datetime | None:
    return None if value is None else from_micros(value)


def _milliseconds(value: int | None) -> int | None:
    return value // 1000 if isinstance(value, int) else None


def _span(start: int | None, end: int | None) -> int | None:
    return max(end - start, 0) // 1000 if isinstance(start, int) and isinstance(end, int) else None


def _ids(read: _ColumnReader, **values: str | None) -> dict[str, Any]:
    return {name: None if value is None else read(name, UUID, value, None) for name, value in values.items()}


def _arguments(read: _ColumnReader, arguments: Arguments, row: Record) -> dict[str, Any]:
    as_stored: tuple[tuple[Any, ...], dict[str, Any]] = ((row["args"],), {})
    flow = _flow(row["options"])
    if flow is not None and flow.marks:
        args, kwargs = read("args", partial(_with_marks, flow), row["args"], as_stored)
    else:
        args, kwargs = read("args", lambda text: arguments(row["target"], text), row["args"], as_stored)
    return {"args": args, "kwargs": kwargs}


def _with_marks(flow: StoredFlow, text: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    args, kwargs = msgspec.json.decode(text)
    return shown(args, kwargs, flow.marks, flow.paths)


def _flow(options: str | None) -> StoredFlow | None:
    try:
        return from_text(options).flow
    except SerializationError:  # reported where the options are read
        return None


def _texts(read: _ColumnReader, **values: str) -> dict[str, Any]:
    return {name: read(name, _text, value, DAMAGED) for name, value in values.items()}


def _numbers(read: _ColumnReader, **values: int) -> dict[str, Any]:
    return {name: read(name, _number, value, 0) for name, value in values.items()}


def _moments(read: _ColumnReader, **values: int | None) -> dict[str, Any]:
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
