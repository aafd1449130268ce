"""Times, amounts and errors as text for people; for pipes, times are absolute and in UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from windlass.domain.job import Job
from windlass.domain.priority import Priority
from windlass.domain.progress import Progress

MAX_COUNTED: Final = 10_000
"""The number at which `app.queues()` stops counting."""
_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
_OLD: Final = timedelta(days=30)


def distance(moment: datetime, now: datetime) -> str:
    """Return how far away a moment is: "3 s ago", "in 5 min", and its date when that is over a month."""
    away = now - moment
    if abs(away) >= _OLD:
        return f"{moment.astimezone():%Y-%m-%d}"
    seconds = int(abs(away).total_seconds())
    if not seconds:
        return "now"
    size, unit = next((size, unit) for size, unit in _UNITS if seconds >= size)
    return f"{seconds // size} {unit} ago" if away > timedelta(0) else f"in {seconds // size} {unit}"


def local(moment: datetime) -> str:
    """Return a moment in local time."""
    return f"{moment.astimezone():%Y-%m-%d %H:%M:%S}"


def utc(moment: datetime) -> str:
    """Return a moment in ISO 8601, in UTC, to the second."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def span(milliseconds: int) -> str:
    """Return a duration: "12 ms", "1.2 s", "3 min 4 s", "2 h 5 min"."""
    if milliseconds < 1_000:
        return f"{milliseconds} ms"
    if milliseconds < 60_000:
        return f"{milliseconds / 1_000:.1f} s"
    seconds = milliseconds // 1_000
    index = next(index for index, (size, _) in enumerate(_UNITS) if seconds >= size)
    (size, unit), (smaller, smaller_unit) = _UNITS[index], _UNITS[index + 1]
    rest = seconds % size // smaller
    return f"{seconds // size} {unit}" + (f" {rest} {smaller_unit}" if rest else "")


def counted(waiting: int) -> str:
    """Return a number of jobs that was counted up to a limit: "9,999", "10,000+"."""
    return f"{waiting:,}+" if waiting >= MAX_COUNTED else f"{waiting:,}"


def jobs(count: int) -> str:
    """Return a number of jobs: "1 job", "12 jobs"."""
    return f"{count:,} job" if count == 1 else f"{count:,} jobs"


def priority(value: int) -> str:
    """Return the name of a priority, or its number if it has none."""
    return Priority(value).name if value in list(Priority) else str(value)


def attempts(job: Job) -> str:
    """Return the attempts spent and allowed: "1/4"."""
    return f"{job.attempts}/{job.max_retries + 1}"


def first_line(text: str | None) -> str:
    """Return the first non-empty line of an error."""
    return next((line.strip() for line in (text or "").splitlines() if line.strip()), "")


def progress(value: Progress) -> str:
    """Return a job's progress: "30 %, 3 of 10, resizing"."""
    parts = [] if value.percent is None else [f"{value.percent:.0f} %"]
    parts.append(f"{value.done:,g}" if value.total is None else f"{value.done:,g} of {value.total:,g}")
    parts += [value.message] if value.message else []
    return ", ".join(parts)


def bar(percent: float, width: int = 20) -> str:
    """Return a bar of text."""
    full = round(percent / 100 * width)
    return "━" * full + "┄" * (width - full)
