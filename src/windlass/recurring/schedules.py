"""The verbs of an application on schedules: `app.schedules`, and `app.schedule`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from windlass import loggers
from windlass.domain.clock import from_micros
from windlass.domain.job import NewJob, SubmittedJob
from windlass.domain.schedule_plan import Misfire, Overlap
from windlass.domain.stored_schedule import Declaration, Schedule, ScheduleRow, ScheduleState, updated
from windlass.errors import (
    ConfigurationError,
    DuplicateBusinessKeyError,
    InvalidOptionError,
    MigrationRequiredError,
    SerializationError,
)
from windlass.recurring.declared_schedules import DeclaredSchedules
from windlass.recurring.schedule_options import ScheduleTimes, check_call, check_schedule_key
from windlass.runtime.verbs import Verb, adrive, drive
from windlass.stores.plans import limits, schedules
from windlass.stores.plans.schedule_calls import ScheduledCall, read_call
from windlass.submission.call import Call
from windlass.submission.handle import JobHandle
from windlass.submission.registry import Registry
from windlass.submission.resources import checked_resources, resources_of
from windlass.submission.submitter import SubmissionParts

logger = loggers.logger("windlass.schedules")

All = list[Schedule]
"""The answer of `Schedules.list`; inside the class, `list` is its method."""
Rows = list[ScheduleRow]

Encoder = Callable[[Call[Any]], NewJob]
"""Makes the row of a call."""


class Schedules(NamedTuple):
    """The schedules of an application: list, pause, resume, trigger and remove them.

    ```python
    for schedule in app.schedules.list():
        print(schedule.key, schedule.next_at)
    app.schedules.pause("hourly-sync")
    ```
    """

    parts: SubmissionParts
    registry: Registry
    declared: DeclaredSchedules

    def list(self) -> All:
        """Return all schedules, by key, with their next ticks."""
        return drive(self._list())

    async def alist(self) -> All:
        """Async twin of `list`."""
        return await adrive(self._list())

    def _list(self) -> Verb[All]:
        yield from self.parts.authorization.check("schedules")
        rows: Rows = []
        while page := (yield from self.parts.access.read(schedules.read, rows[-1].key if rows else "")):
            rows += page
        return [_view(row) for row in rows]

    def pause(self, key: str) -> bool:
        """Stop the ticks of a schedule until it is resumed; False if there is none. Its runs continue."""
        return drive(self._steer("pause_schedule", schedules.pause, key))

    async def apause(self, key: str) -> bool:
        """Async twin of `pause`."""
        return await adrive(self._steer("pause_schedule", schedules.pause, key))

    def resume(self, key: str) -> bool:
        """Resume it with the first tick after now; return False if there is none. Missed ticks are not caught up on."""
        return drive(self._steer("resume_schedule", schedules.resume, key))

    async def aresume(self, key: str) -> bool:
        """Async twin of `resume`."""
        return await adrive(self._steer("resume_schedule", schedules.resume, key))

    def _steer(self, action: str, plan: Any, key: str) -> Verb[bool]:
        yield from self.parts.authorization.check(action)
        changed: bool = yield from self.parts.access.run(plan, check_schedule_key(key))
        self.parts.local_node.schedules_changed()
        return changed

    def trigger(self, key: str) -> JobHandle[Any] | None:
        """Run a schedule's job now, also while it is paused; None if there is no such schedule. Its ticks stay."""
        return drive(self._trigger(key))

    async def atrigger(self, key: str) -> JobHandle[Any] | None:
        """Async twin of `trigger`."""
        return await adrive(self._trigger(key))

    def _trigger(self, key: str) -> Verb[JobHandle[Any] | None]:
        parts = self.parts
        yield from parts.authorization.check("trigger_schedule")
        job: NewJob | None = yield from parts.access.run(schedules.trigger, check_schedule_key(key))
        if job is None:
            return None
        parts.local_node.new_work([(job.queue, job.priority)])
        if parts.inline is not None:
            yield parts.inline.run, parts.inline.arun, ()
        spec = self.registry.spec_of(job.target)
        return JobHandle(SubmittedJob(job.id), parts.verbs, None if spec is None else spec.returns)

    def remove(self, key: str) -> bool:
        """Remove a schedule that `app.schedule` has stored; False if there is none. Its runs stay.

        One that this application or a running worker declares with `@app.recurring` is refused: it would be back at
        the next start of a worker.
        """
        return drive(self._remove(key))

    async def aremove(self, key: str) -> bool:
        """Async twin of `remove`."""
        return await adrive(self._remove(key))

    def _remove(self, key: str) -> Verb[bool]:
        yield from self.parts.authorization.check("remove_schedule")
        if check_schedule_key(key) in self.declared:
            raise _back_again(key, self.declared.origin)
        removed: schedules.Removed = yield from self.parts.access.run(schedules.remove, key)
        if removed.declared_by is not None:
            raise _back_again(key, removed.declared_by)
        return removed.found


def store(schedule_verbs: Schedules, key: object, call: object, times: ScheduleTimes, encode: Encoder) -> Verb[None]:
    """Store a schedule under its key, or change the one that is there; see `app.schedule`."""
    parts, name, checked = schedule_verbs.parts, check_schedule_key(key), check_call(call)
    row = encode(checked)
    wanted = times.declare(name, ScheduledCall.of(row).text)
    yield from parts.authorization.check("schedule")
    yield from parts.authorization.check_calls([checked])
    if name in schedule_verbs.declared:
        raise _declared_elsewhere(name, schedule_verbs.declared.origin)
    try:
        yield from parts.access.ready()
    except MigrationRequiredError as error:
        # `windlass migrate` imports the module that calls this; it must not need what it is about to create.
        logger.warning("schedule %s is not stored: %s", name, error)
        return
    if not (yield from parts.access.read(schedules.differs, wanted)):
        return
    _refuse_ended(wanted, (yield from parts.access.read(schedules.present)))
    if asked := resources_of([row]):
        checked_resources(asked, (yield from parts.access.read(limits.known_resources, sorted(asked))))
    _settled((yield from parts.access.run(schedules.store, [wanted], None)))
    parts.local_node.schedules_changed()


def _refuse_ended(wanted: Declaration, now: int) -> None:
    if updated(wanted, None, None, "", now).state == ScheduleState.ENDED:
        end = "" if wanted.ends is None else f" until {from_micros(wanted.ends).isoformat()}"
        raise InvalidOptionError(
            f"schedule {wanted.key!r} must have a tick in the future, got {wanted.cron}{end}; leave it out, or change "
            "its times"
        )


def _settled(stored: schedules.Stored) -> None:
    """Raise the error that the store's answer stands for."""
    for key, holder in stored.held.items():
        raise DuplicateBusinessKeyError(key, UUID(holder.id), holder.kind)
    for key, origin in stored.foreign.items():
        raise _declared_elsewhere(key, origin)


def _declared_elsewhere(key: str, origin: str) -> ConfigurationError:
    return ConfigurationError(
        f"schedule {key!r} is declared with @app.recurring by {origin or 'an application'}; change it there, or use "
        "another key"
    )


def _back_again(key: str, origin: str) -> ConfigurationError:
    return ConfigurationError(
        f"schedule {key!r} is declared by {origin or 'an application'}, and would be back at the next start of a "
        "worker; pause it, or take it out of the code"
    )


def _view(row: ScheduleRow) -> Schedule:
    try:
        target = read_call(row.call).target
    except SerializationError:  # damaged: it must not hide the others
        target = "?"
    paused = row.state == ScheduleState.PAUSED
    return Schedule(
        key=row.key,
        cron=row.cron,
        zone=row.zone,
        target=target,
        state=row.state,
        paused=paused,
        misfire=Misfire.__members__.get(row.misfire, Misfire.CATCH_UP),
        overlap=Overlap.__members__.get(row.overlap, Overlap.ALLOW),
        skipped=row.skipped,
        next_at=None if paused else _moment(row.next_at),
        last_at=_moment(row.last_at),
    )


def _moment(value: object) -> datetime | None:
    return from_micros(value) if isinstance(value, int) else None  # SQLite keeps any text where a number should be
