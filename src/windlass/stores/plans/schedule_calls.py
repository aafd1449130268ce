"""The job that a schedule stores at each tick, as one text: a node that fires it need not know its target."""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from typing import Annotated
from uuid import UUID

import msgspec
from msgspec import Meta

from windlass.domain.job import NewJob
from windlass.domain.lanes import read_lane
from windlass.domain.schedule_plan import Overlap, jitter_of
from windlass.domain.stored_schedule import ScheduleRow
from windlass.errors import SerializationError


class ScheduledCall(msgspec.Struct, frozen=True, omit_defaults=True):
    """The fields of a job's row that its schedule knows."""

    target: str
    args: str
    queue: str
    priority: Annotated[int, Meta(ge=0, le=9)]
    options: str | None = None
    tags: str | None = None
    params: str | None = None
    correlation_id: str | None = None
    lane: str | None = None
    expires_us: Annotated[int, Meta(gt=-(1 << 62), lt=1 << 62)] | None = None

    @classmethod
    def of(cls, row: NewJob) -> ScheduledCall:
        """Return what is stored of a job's row."""
        return cls(**{name: getattr(row, name) for name in cls.__struct_fields__})

    @property
    def text(self) -> str:
        """The stored form."""
        return msgspec.json.encode(self).decode()


@lru_cache(maxsize=4096)
def read_call(text: str) -> ScheduledCall:
    """Read the stored form; raise `SerializationError` if it is damaged."""
    try:
        call = msgspec.json.decode(text, type=ScheduledCall)
    except (msgspec.DecodeError, TypeError, RecursionError) as error:
        raise SerializationError(f"the stored call of a schedule is damaged: {error}") from error
    if any("\0" in value for value in msgspec.structs.astuple(call) if isinstance(value, str)):
        raise SerializationError("the stored call of a schedule is damaged: it has a NUL, which no column takes")
    return call


def run_of(schedule: ScheduleRow, job_id: str, tick: int | None) -> NewJob:
    """Return the job of a tick, due then and its jitter later; None: the job of a trigger, due now."""
    call = read_call(schedule.call)
    lane = call.lane
    if schedule.overlap == Overlap.QUEUE:
        lane = read_lane(lane)._replace(schedule=schedule.id).text
    delay = 0 if tick is None else jitter_of(UUID(schedule.id), tick, schedule.jitter_us)
    due = None if tick is None else tick + delay
    return NewJob(
        id=job_id,
        queue=call.queue,
        target=call.target,
        priority=call.priority,
        args=call.args,
        due_at=due,
        delay_us=0 if due is None else None,
        options=call.options,
        tags=call.tags,
        params=call.params,
        correlation_id=call.correlation_id,
        lane=lane,
        expires_us=None if call.expires_us is None else call.expires_us + delay,  # not before it is due
    )


def trigger_number(job_id: str) -> int:
    """Return what stands for the tick of a triggered run, which has none: its own negative number, below all ticks."""
    return -1 - int.from_bytes(blake2b(job_id.encode(), digest_size=7).digest())
