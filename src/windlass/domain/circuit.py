"""The circuit breaker of a service as a pure state machine: ended calls in, the states CLOSED, OPEN and HALF_OPEN out.

CLOSED counts the last calls. Once enough of them have failed it is OPEN: nothing is let through until its wait has
passed. Then it is HALF_OPEN: a few trials are let through, and their outcomes decide between the other two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from enum import Enum, StrEnum
from typing import Any, Final, NamedTuple

from windlass.domain.clock import MICROSECONDS
from windlass.domain.durations import seconds
from windlass.errors import InvalidOptionError

FAILED, WENT_WELL = "1", "0"


class CircuitState(StrEnum):
    """What a circuit does with the jobs behind it."""

    CLOSED = "CLOSED"
    """It lets them through."""
    OPEN = "OPEN"
    """It lets none through."""
    HALF_OPEN = "HALF_OPEN"
    """It lets a few through as trials."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CircuitSettings:
    """When a circuit opens, and how it closes again."""

    failure_rate: float = 50.0
    """Percentage of failed calls that opens it."""
    window: int = 100
    """Number of calls that are counted, the latest ones."""
    minimum_calls: int = 5
    """Number of calls that must have been counted before it can open."""
    open_wait: float = 30.0
    """Seconds until it lets trials through."""
    trials: int = 3
    """Number of trials that it lets through then."""
    record: tuple[str, ...] = ()
    """Error classes that count as failures; empty means all of them."""
    ignore: tuple[str, ...] = ()
    """Error classes that do not count at all."""

    def counts(self, raised: Sequence[str]) -> bool | None:
        """Return whether a call that raised an error of these classes failed; None if it does not count."""
        if not raised:
            return False
        if any(name in self.ignore for name in raised):
            return None
        return not self.record or any(name in self.record for name in raised)


class CircuitProfile(Enum):
    """Settings that fit common kinds of services."""

    DEFAULT = CircuitSettings()
    FAST = CircuitSettings(window=20, minimum_calls=3, open_wait=10.0, trials=2)
    CRITICAL = CircuitSettings(failure_rate=75.0, window=200, minimum_calls=10, open_wait=60.0, trials=5)
    EXTERNAL_API = CircuitSettings(failure_rate=60.0, window=50, open_wait=60.0)

    def with_changes(self, **changes: Any) -> CircuitSettings:
        """Return these settings with some changed; an error names the invalid one."""
        return replace(self.value, **{name: _checked(name, value) for name, value in changes.items()})


class ServiceCall(NamedTuple):
    """An ended call to the service."""

    raised: tuple[str, ...] = ()
    """Names of the error's class and its bases; none if it returned."""
    trial: bool = False
    """Whether a circuit that was not closed let it through."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Circuit:
    """A circuit as it is stored."""

    settings: CircuitSettings = CircuitSettings()
    calls: str = ""
    """The last calls, oldest first."""
    opens_at: int | None = None
    """When it lets trials through; None while it is closed."""
    trials: str = ""
    """Outcomes of the trials so far."""
    held_open: bool = False
    """Opened by hand, and stays open until it is closed by hand."""
    configured: bool = False
    """Whether it has its own settings; otherwise nodes use their default for circuits."""

    def with_default(self, settings: CircuitSettings) -> Circuit:
        """Return the circuit, with these settings unless it has its own."""
        return self if self.configured else replace(self, settings=settings)

    def state(self, now: int) -> CircuitState:
        """Return the state at this time of the store's clock."""
        if self.opens_at is None:
            return CircuitState.CLOSED
        return CircuitState.OPEN if self.held_open or self.opens_at > now else CircuitState.HALF_OPEN

    @property
    def cap(self) -> int | None:
        """Number of jobs that may be let through, which are the remaining trials; None for any number."""
        return None if self.opens_at is None else self.settings.trials - len(self.trials)

    def after(self, calls: Iterable[ServiceCall], now: int) -> Circuit:
        """Return the circuit after these calls have ended, in this order.

        A trial that ends after others have opened the circuit again adds nothing, and is not counted.
        """
        circuit = self
        for call in calls:
            failed = circuit.settings.counts(call.raised)
            if failed is None or circuit.held_open:
                continue
            if circuit.opens_at is None:
                circuit = circuit._counted(failed, now)
            elif call.trial and circuit.opens_at <= now:
                circuit = circuit._tried(failed, now)
        return circuit

    def opened(self, now: int) -> Circuit:
        """Return it open until its wait has passed."""
        return replace(self, calls="", trials="", opens_at=now + int(self.settings.open_wait * MICROSECONDS))

    def opened_by_hand(self, now: int) -> Circuit:
        """Return it open until it is closed by hand."""
        return replace(self.opened(now), opens_at=NEVER, held_open=True)

    def closed(self) -> Circuit:
        """Return it closed, with nothing counted."""
        return Circuit(settings=self.settings, configured=self.configured)

    def _counted(self, failed: bool, now: int) -> Circuit:
        settings = self.settings
        calls = (self.calls + (FAILED if failed else WENT_WELL))[-settings.window :]
        if len(calls) >= settings.minimum_calls and 100 * calls.count(FAILED) >= settings.failure_rate * len(calls):
            return self.opened(now)
        return replace(self, calls=calls)

    def _tried(self, failed: bool, now: int) -> Circuit:
        """Count a trial, and decide as soon as no further trial can change the decision."""
        settings = self.settings
        trials = self.trials + (FAILED if failed else WENT_WELL)
        too_many = settings.failure_rate * settings.trials / 100
        if trials.count(FAILED) >= too_many:
            return self.opened(now)
        if settings.trials - trials.count(WENT_WELL) < too_many or len(trials) >= settings.trials:
            return self.closed()
        return replace(self, trials=trials)

    def to_json(self) -> dict[str, Any]:
        """Return the stored form."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Circuit:
        """Return the circuit of a stored form; fields unknown to this version are ignored."""
        known = {field.name for field in fields(CircuitSettings)}
        given = {name: value for name, value in stored.get("settings", {}).items() if name in known}
        lists = {name: tuple(given[name]) for name in ("record", "ignore") if name in given}
        names = {field.name for field in fields(cls)} - {"settings"}
        rest = {name: value for name, value in stored.items() if name in names}
        settings = CircuitSettings(**{**given, **lists})
        rest.setdefault("configured", settings != CircuitSettings())  # stored before that field existed
        return cls(settings=settings, **rest)


NEVER: Final = 2**62
"""A time that is never reached."""


def class_names(kind: type[BaseException]) -> tuple[str, ...]:
    """Return the names of an error's class and its bases, as circuits store them."""
    return tuple(f"{base.__module__}:{base.__qualname__}" for base in kind.__mro__ if base is not object)


def _checked(name: str, value: Any) -> Any:
    check = _CHECKS.get(name)
    if check is None:
        raise InvalidOptionError(f"a circuit has no setting {name!r}; it has {', '.join(_CHECKS)}")
    return check(name, value)


def _percent(name: str, value: Any) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 100:
        return float(value)
    raise InvalidOptionError(f"{name} must be a percentage above 0 and up to 100, got {value!r}; e.g. 50")


def _whole(name: str, value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 10_000:
        return value
    raise InvalidOptionError(f"{name} must be a whole number from 1 to 10,000, got {value!r}")


def _wait(name: str, value: Any) -> float:
    return seconds(value, name)


def _classes(name: str, value: Any) -> tuple[str, ...]:
    kinds = list(value) if isinstance(value, Iterable) and not isinstance(value, str) else [value]
    for kind in kinds:
        if not (isinstance(kind, type) and issubclass(kind, BaseException)):
            raise InvalidOptionError(f"{name} takes classes of errors, got {kind!r}; e.g. {name}=[ConnectionError]")
    return tuple(class_names(kind)[0] for kind in kinds)


_CHECKS: Final = {
    "failure_rate": _percent,
    "window": _whole,
    "minimum_calls": _whole,
    "open_wait": _wait,
    "trials": _whole,
    "record": _classes,
    "ignore": _classes,
}


class CircuitChange(NamedTuple):
    """A circuit before and after, as of `now`."""

    service: str
    before: Circuit
    after: Circuit
    now: int

    @property
    def opened(self) -> bool:
        """Whether it lets nothing through any more, or again."""
        return self.after.opens_at is not None and self.after.opens_at != self.before.opens_at

    @property
    def closed(self) -> bool:
        """Whether it lets everything through again."""
        return self.after.opens_at is None and self.before.opens_at is not None
