"""Rows of the store as the values users see."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from windlass.domain.clock import from_micros
from windlass.domain.cluster import Node, Queue, QueueHour
from windlass.domain.job import Attempt, Job
from windlass.domain.lanes import read_lane
from windlass.domain.protected import per_of
from windlass.domain.report import LogLine, Progress, percent_of
from windlass.domain.states import LIVE, JobStatus
from windlass.domain.tags import tags_of
from windlass.stores.queues import Depth
from windlass.stores.reading import StoredJob
from windlass.stores.reports import LineRow
from windlass.stores.statistics import Sums
from windlass.submission.stored_options import from_text

Arguments = Callable[[str, str], tuple[tuple[Any, ...], dict[str, Any]]]
Result = Callable[[str, str | None], Any]


def job_of(stored: StoredJob, arguments: Arguments, result: Result) -> Job:
    """A row of `get_job` as a `Job`."""
    (
        job_id, target, queue, status, priority, args_text, options, tags, params, correlation_id, idempotency_key,
        business_key, parent, batch, created, fence, attempts, crashes, node, due, picked, paused_from,
        result_text, error, error_class, reason, superseded_by, started, finished, *progress, lane,
    ) = stored.row  # fmt: skip
    live = JobStatus(status) in LIVE
    last = stored.last_attempt if attempts or not live else None  # retried by hand: what was before is history
    last_error, last_class, wait_us, last_started, last_ended = last or (None,) * 5
    args, kwargs = arguments(target, args_text)
    return Job(
        id=UUID(job_id),
        target=target,
        queue=queue,
        status=JobStatus(status),
        priority=priority,
        args=args,
        kwargs=kwargs,
        result=result(target, result_text),
        error=last_error if live else error,
        error_class=last_class if live else error_class,
        reason=reason,
        attempts=attempts,
        max_retries=from_text(options).max_retries,
        crash_count=crashes,
        tags=tags_of(tags),
        params=msgspec.json.decode(params) if params else {},
        idempotency_key=idempotency_key,
        business_key=business_key,
        node=node,
        **_moments(created_at=created, due_at=due, picked_at=picked, finished_at=finished),
        started_at=_moment(last_started if live else started),
        **_times(wait_us, last_started, last_ended),
        correlation_id=correlation_id,
        **_ids(parent_id=parent, batch_id=batch, superseded_by=superseded_by),
        paused_from=None if paused_from is None else JobStatus(paused_from),
        version=_version(fence, ended=not live or paused_from == JobStatus.FAILED),
        **_gates(lane),
        progress=_progress(*progress),
    )


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
        picked_at=_moment(picked),
        started_at=_moment(started),
        ended_at=from_micros(ended),
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


def _moments(**values: int | None) -> dict[str, Any]:
    return {name: _moment(value) for name, value in values.items()}


def _milliseconds(value: int | None) -> int | None:
    return None if value is None else value // 1000


def _span(start: int | None, end: int | None) -> int | None:
    return None if start is None or end is None else max(end - start, 0) // 1000


def _ids(**values: str | None) -> dict[str, Any]:
    return {name: None if value is None else UUID(value) for name, value in values.items()}
