"""The options of a job: how they are checked, how those on the decorator and those of one call are merged."""

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, Final, Literal, Protocol, Self, TypedDict, TypeVar, Unpack, runtime_checkable

from windlass.domain.backoff import Backoff
from windlass.domain.connections import check_connection
from windlass.domain.durations import seconds
from windlass.domain.keys import check_key, check_params, check_queue, check_tags
from windlass.domain.priority import Priority, parse_priority
from windlass.errors import InvalidOptionError

MAX_RETRIES: Final = 1_000
DEFAULT_QUEUE: Final = "default"

OnConflict = Literal["raise", "return_existing", "replace"]
Executor = Literal["async", "thread", "process"]

_NO_BACKOFF: Final = Backoff.none()

_T = TypeVar("_T")


class Unset(Enum):
    """The type of `UNSET`, an enum so that type checkers narrow it away."""

    UNSET = "UNSET"

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = Unset.UNSET
"""Not given, as opposed to None, which says "none"."""


@runtime_checkable
class BoundCall(Protocol):
    """A target with arguments of its own, e.g. `clean_up.bind(RESULT, 7)`."""

    @property
    def target(self) -> str:
        """The stored name of its function."""
        ...

    @property
    def args(self) -> tuple[Any, ...]:
        """Its positional arguments."""
        ...

    @property
    def kwargs(self) -> Mapping[str, Any]:
        """Its arguments by name."""
        ...


Callback = Callable[..., object] | BoundCall
"""What can follow a job: a job, a function that the target policy admits, or a call."""


class JobOptionsDict(TypedDict, total=False):
    """The options as keywords, for `**options: Unpack[JobOptionsDict]`."""

    priority: int
    max_retries: int
    backoff: Backoff
    timeout: float | timedelta | None
    delay: float | timedelta | None
    run_at: datetime | None
    queue: str
    tags: Iterable[str]
    params: Mapping[str, Any]
    correlation_id: str | None
    idempotency_key: str | None
    business_key: str | None
    on_conflict: OnConflict
    executor: Executor | None
    on_success: Callback | None
    on_failure: Callback | None
    connection: object | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedOptions:
    """Options with every default filled in; only `timeout` may still be UNSET, which means the setting decides."""

    priority: int = Priority.NORMAL.value
    max_retries: int = 0
    backoff: Backoff = _NO_BACKOFF
    timeout: float | Unset | None = UNSET
    delay: float = 0.0
    run_at: datetime | None = None
    queue: str = DEFAULT_QUEUE
    tags: tuple[str, ...] = ()
    params: Mapping[str, Any] = field(default_factory=dict)
    correlation_id: str | None = None
    idempotency_key: str | None = None
    business_key: str | None = None
    on_conflict: OnConflict = "raise"
    executor: Executor | None = None
    on_success: Callback | None = None
    on_failure: Callback | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOptions:
    """Checked options of a job; what was not given is UNSET. Made by `make`.

    ```python
    JobOptions.make(max_retries=3, queue="billing").merged(JobOptions.make(delay=60)).resolved().delay == 60.0
    ```
    """

    priority: int | Unset = UNSET
    max_retries: int | Unset = UNSET
    backoff: Backoff | Unset = UNSET
    timeout: float | Unset | None = UNSET
    delay: float | Unset | None = UNSET
    run_at: datetime | Unset | None = UNSET
    queue: str | Unset = UNSET
    tags: tuple[str, ...] | Unset = UNSET
    params: Mapping[str, Any] | Unset = UNSET
    correlation_id: str | Unset | None = UNSET
    idempotency_key: str | Unset | None = UNSET
    business_key: str | Unset | None = UNSET
    on_conflict: OnConflict | Unset = UNSET
    executor: Executor | Unset | None = UNSET
    on_success: Callback | Unset | None = UNSET
    on_failure: Callback | Unset | None = UNSET
    connection: Any = field(default=UNSET, repr=False)
    """The caller's own, for one submission: the one option that is never stored."""

    @classmethod
    def make(cls, **options: Unpack[JobOptionsDict]) -> Self:
        """Check options as a user wrote them; the error names the option, what came and what is expected."""
        given: dict[str, Any] = {}
        for name, value in options.items():
            check = _CHECKS.get(name)
            if check is None:
                raise InvalidOptionError(_unknown(name))
            given[name] = value if value is UNSET else check(value)
        if _is_given(given.get("delay", UNSET)) and _is_given(given.get("run_at", UNSET)):
            raise InvalidOptionError(
                f"give delay or run_at, not both: got delay={options['delay']!r} and run_at={options['run_at']!r}"
            )
        return cls(**given)

    def merged(self, over: "JobOptions") -> "JobOptions":
        """Give these options with those set in `over` in their place; `delay` and `run_at` replace each other."""
        given = {name: value for name in _NAMES if (value := getattr(over, name)) is not UNSET}
        if not given:
            return self
        if "delay" in given or "run_at" in given:
            given = {"delay": UNSET, "run_at": UNSET, **given}
        return replace(self, **given)

    def resolved(self) -> ResolvedOptions:
        """Give plain values, defaults filled in."""
        given = {name: value for name in _NAMES if (value := getattr(self, name)) is not UNSET}
        given.pop("connection", None)
        if given.get("delay", UNSET) is None:
            del given["delay"]
        return ResolvedOptions(**given)


_NAMES: Final = tuple(option.name for option in fields(JobOptions))


def _is_given(value: object) -> bool:
    return value is not UNSET and value is not None


def _unknown(name: str) -> str:
    close = difflib.get_close_matches(name, _NAMES, n=1)
    if close:
        return f"unknown option {name!r}; did you mean {close[0]!r}?"
    return f"unknown option {name!r}; the options are {', '.join(_NAMES)}"


def _check_max_retries(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_RETRIES:
        return int(value)
    raise InvalidOptionError(f"max_retries must be an integer from 0 to {MAX_RETRIES}, got {value!r}")


def _check_backoff(value: object) -> Backoff:
    if isinstance(value, Backoff):
        return value
    hint = f"Backoff.fixed({value!r})" if isinstance(value, int | float) else "Backoff.exponential(1)"
    raise InvalidOptionError(f"backoff must be a Backoff, got {value!r}; write {hint} or Backoff.none()")


def _check_timeout(value: object) -> float:
    limit = seconds(value, "timeout")
    if limit == 0:
        raise InvalidOptionError(f"timeout must be more than 0 seconds, got {value!r}; timeout=None means no timeout")
    return limit


def _check_delay(value: object) -> float:
    return seconds(value, "delay")


def _check_run_at(value: object) -> datetime:
    if not isinstance(value, datetime):
        raise InvalidOptionError(
            f"run_at must be an aware datetime, got {value!r} ({type(value).__name__}); for a wait from now use delay"
        )
    if value.utcoffset() is None:
        raise InvalidOptionError(f"run_at must have a time zone, got the naive {value!r}; add e.g. tzinfo=datetime.UTC")
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise InvalidOptionError(f"run_at must lie between the years 1 and 9999 in UTC, got {value!r}") from None


def _check_on_conflict(value: object) -> OnConflict:
    if value in ("raise", "return_existing", "replace"):
        return value
    raise InvalidOptionError(f"on_conflict must be 'raise', 'return_existing' or 'replace', got {value!r}")


def _check_executor(value: object) -> Executor:
    if value in ("async", "thread", "process"):
        return value
    raise InvalidOptionError(f"executor must be 'async', 'thread' or 'process', got {value!r}")


def _callback(name: str) -> Callable[[object], Callback]:
    def check(value: object) -> Callback:
        if isinstance(value, BoundCall) or callable(value):
            return value
        raise InvalidOptionError(
            f"{name} must be a job, a function or a call such as clean_up.bind(RESULT, 7), got {value!r}"
            + ("; bind its arguments: .bind(RESULT)" if hasattr(value, "bind") else "")
        )

    return check


def _key(name: str) -> Callable[[object], str]:
    return lambda value: check_key(value, name)


def _or_none(check: Callable[[object], _T]) -> Callable[[object], _T | None]:
    return lambda value: None if value is None else check(value)


_CHECKS: Final[Mapping[str, Callable[[object], Any]]] = {
    "priority": parse_priority,
    "max_retries": _check_max_retries,
    "backoff": _check_backoff,
    "timeout": _or_none(_check_timeout),
    "delay": _or_none(_check_delay),
    "run_at": _or_none(_check_run_at),
    "queue": check_queue,
    "tags": check_tags,
    "params": check_params,
    "correlation_id": _or_none(_key("correlation_id")),
    "idempotency_key": _or_none(_key("idempotency_key")),
    "business_key": _or_none(_key("business_key")),
    "on_conflict": _check_on_conflict,
    "executor": _or_none(_check_executor),
    "on_success": _or_none(_callback("on_success")),
    "on_failure": _or_none(_callback("on_failure")),
    "connection": _or_none(check_connection),
}
