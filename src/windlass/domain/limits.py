"""Resources and circuits as users see them, and the checks of configured limits."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from windlass.domain.circuit import CircuitSettings, CircuitState
from windlass.errors import InvalidOptionError

Per = Literal["second", "minute", "hour", "day"]

PER_US: Final = {"second": 1_000_000, "minute": 60_000_000, "hour": 3_600_000_000, "day": 86_400_000_000}
MOST: Final = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A resource, from `app.resources()`; with a `key`, the share that jobs with that key use."""

    name: str
    key: str | None
    max_concurrent: int | None
    in_use: int
    rate: int | None
    per: Per | None
    retry_delay: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CircuitStatus:
    """A circuit, from `app.circuits()`."""

    service: str
    state: CircuitState
    calls: int
    """Number of calls that it counts now."""
    failures: int
    opens_at: datetime | None
    """When it lets trials through; None while it is closed, or held open by hand."""
    held_open: bool
    """Opened by hand, and stays open until it is closed by hand."""
    settings: CircuitSettings


def check_cap(value: object, name: str) -> int | None:
    """Return the limit of jobs at a time, or raise InvalidOptionError; None for any number."""
    return _whole(value, name, least=0)


def check_rate(value: object, name: str = "rate") -> int | None:
    """Return the limit of jobs per period, or raise InvalidOptionError; None for any number."""
    return _whole(value, name, least=1)


def check_per(value: object) -> int:
    """Return a named period in microseconds, or raise InvalidOptionError."""
    if isinstance(value, str) and value in PER_US:
        return PER_US[value]
    raise InvalidOptionError(f"per must be one of {', '.join(map(repr, PER_US))}, got {value!r}")


def per_of(per_us: int | None) -> Per | None:
    """Return the name of a period."""
    names: dict[int, Per] = {1_000_000: "second", 60_000_000: "minute", 3_600_000_000: "hour", 86_400_000_000: "day"}
    return None if per_us is None else names.get(per_us)


def _whole(value: object, name: str, *, least: int) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and least <= value <= MOST):
        return value
    hint = "; less than one a second is written per minute, hour or day" if name == "rate" else ""
    raise InvalidOptionError(
        f"{name} must be a whole number of at least {least}, or None for no limit, got {value!r}{hint}"
    )
