"""The options of a schedule, checked where they are written."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final, NamedTuple, TypeVar

from windlass.domain.clock import MICROSECONDS, micros
from windlass.domain.cron import Cron
from windlass.domain.durations import seconds
from windlass.domain.intervals import Every
from windlass.domain.keys import check_key
from windlass.domain.options import UNSET, JobOptions
from windlass.domain.schedule_plan import CATCH_UP, Misfire, Overlap, SchedulePlan, parse_times
from windlass.domain.stored_schedule import Declaration
from windlass.errors import InvalidOptionError
from windlass.submission.call import Call, Flow, Group
from windlass.submission.error_text import short

E = TypeVar("E", bound=StrEnum)

Times = str | Every
"""When a schedule fires: a cron expression, or an interval made by `every`."""

_REFUSED: Final = {
    "idempotency_key": "every run would be a duplicate of the first one",
    "business_key": "the schedule's key is one already, and overlap= says whether runs may overlap",
    "connection": "its runs are stored by workers, in transactions of their own",
    "delay": "its runs are due at their ticks; change the times, or give jitter=",
    "run_at": "its runs are due at their ticks; change the times, or give start=",
}
"""Options of jobs that a schedule cannot have, and why."""


class ScheduleTimes(NamedTuple):
    """Everything about a schedule but its key and its call."""

    cron: str
    zone: str
    starts: int | None
    ends: int | None
    jitter_us: int
    misfire: Misfire
    catch_up: int
    overlap: Overlap

    @classmethod
    def make(
        cls,
        times: object,
        zone: object = "UTC",
        misfire: object = Misfire.CATCH_UP,
        overlap: object = Overlap.ALLOW,
        jitter: float | timedelta = 0,
        start: datetime | None = None,
        end: datetime | None = None,
        catch_up: int = CATCH_UP,
    ) -> ScheduleTimes:
        """Check what a user has written; an error names what is wrong."""
        checked = _times(times)
        starts, ends = _moment(start, "start"), _moment(end, "end")
        plan = SchedulePlan(
            times=checked,
            zone=zone,  # type: ignore[arg-type]  # checked there
            anchor=starts or 0,
            starts=starts,
            ends=ends,
            jitter_us=int(seconds(jitter, "jitter") * MICROSECONDS),
            misfire=_member(Misfire, misfire, "misfire"),
            catch_up=catch_up,
        )
        overlaps = _member(Overlap, overlap, "overlap")
        return cls(str(checked), plan.zone, starts, ends, plan.jitter_us, plan.misfire, plan.catch_up, overlaps)

    def declare(self, key: str, call: str) -> Declaration:
        """Return the schedule with this key that stores this call."""
        return Declaration(
            key,
            self.cron,
            self.zone,
            self.starts,
            self.ends,
            self.jitter_us,
            self.misfire.value,
            self.catch_up,
            self.overlap.value,
            call,
        )


def check_schedule_key(key: object) -> str:
    """Check the key of a schedule, which is a business key."""
    return check_key(key, "key")


def check_call(call: object) -> Call[Any]:
    """Check what a schedule stores at each tick: one call."""
    if isinstance(call, Flow | Group):
        raise InvalidOptionError(
            "a schedule stores one job at each tick, got a flow; schedule a job whose body enqueues the flow"
        )
    if not isinstance(call, Call):
        hint = "bind its arguments: job.bind(…)" if callable(call) else "give one, e.g. sync.bind('eu')"
        raise InvalidOptionError(f"a schedule needs a call, got {short(call)}; {hint}")
    if call.wait is not None:
        raise InvalidOptionError(
            f"a run of a schedule is due at its tick and waits for no signal, got await_signal({call.wait.key!r}); "
            "schedule a job whose body enqueues the one that waits"
        )
    check_options(call.options)
    return call


def check_options(options: JobOptions) -> None:
    """Refuse options of jobs that make no sense for the runs of a schedule."""
    for name, why in _REFUSED.items():
        if getattr(options, name) not in (UNSET, None):
            raise InvalidOptionError(f"{name} cannot be an option of a schedule: {why}")
    if isinstance(options.expires, datetime):
        raise InvalidOptionError(
            f"expires of a schedule must be seconds after each tick, got the time {options.expires!r}; give end= for "
            "the schedule itself"
        )


def check_takes_nothing(function: Callable[..., Any], *, is_static: bool) -> None:
    """Refuse a function with parameters that a tick could not fill."""
    try:
        slots = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # a builtin: its call is checked when a worker starts
        return
    inside = function.__qualname__.rpartition(".")[0]
    if inside and not inside.endswith("<locals>") and not is_static:
        slots = slots[1:]  # self or cls
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    required = [
        slot.name
        for slot in slots
        if slot.default is slot.empty and slot.kind not in variable and "JobContext" not in str(slot.annotation)
    ]
    if required:
        raise InvalidOptionError(
            f"{function.__qualname__} needs {', '.join(required)}, and a tick has no arguments; give defaults, or "
            f"write app.schedule(key, times, {function.__name__}.bind(…))"
        )


def _times(times: object) -> Cron | Every:
    return times if isinstance(times, Every) else parse_times(times)  # type: ignore[arg-type]  # checked there


def _moment(value: object, name: str) -> int | None:
    if value is None:
        return None
    if not isinstance(value, datetime):
        raise InvalidOptionError(f"{name} must be an aware datetime, got {short(value)}")
    return micros(value)


def _member(kind: type[E], value: object, name: str) -> E:
    try:
        return kind(str(value).upper())
    except ValueError:
        names = ", ".join(f"{kind.__name__}.{one.name}" for one in kind)
        raise InvalidOptionError(f"{name} must be one of {names}, got {value!r}") from None
