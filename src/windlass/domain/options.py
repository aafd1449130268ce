"""The options of a job: their checks, and how options of the decorator and of one call are merged."""

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Final, Self, TypedDict, Unpack

from windlass.domain.backoff import Backoff
from windlass.domain.option_checks import CHECKS, Callback, Executor, OnConflict
from windlass.domain.other_queues import OPTIONS
from windlass.domain.priority import Priority
from windlass.errors import InvalidOptionError, WindlassError

DEFAULT_QUEUE: Final = "default"

_NO_BACKOFF: Final = Backoff.none()


class Unset(Enum):
    """The type of `UNSET`, an enum so that type checkers narrow it away."""

    UNSET = "UNSET"

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = Unset.UNSET
"""The value of an option that was not given, as opposed to None, which means "none"."""


class JobOptionsDict(TypedDict, total=False):
    """The options as keywords, for `**options: Unpack[JobOptionsDict]`."""

    priority: int
    max_retries: int
    backoff: Backoff
    retry_on: type[BaseException] | Iterable[type[BaseException]] | None
    give_up_on: type[BaseException] | Iterable[type[BaseException]] | None
    timeout: float | timedelta | None
    delay: float | timedelta | None
    run_at: datetime | None
    expires: float | timedelta | datetime | None
    queue: str
    tags: Iterable[str]
    params: Mapping[str, Any]
    correlation_id: str | None
    idempotency_key: str | None
    business_key: str | None
    on_conflict: OnConflict
    resource: str | None
    resource_key: str | None
    circuit: str | None
    executor: Executor | None
    encrypted: bool
    on_success: Callback | None
    on_failure: Callback | None
    connection: object | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedOptions:
    """Options with every default filled in; only `timeout` may still be UNSET: then the setting decides."""

    priority: int = Priority.NORMAL.value
    max_retries: int = 0
    backoff: Backoff = _NO_BACKOFF
    retry_on: tuple[type[BaseException], ...] | None = None
    """None: any error."""
    give_up_on: tuple[type[BaseException], ...] | None = None
    timeout: float | Unset | None = UNSET
    delay: float = 0.0
    run_at: datetime | None = None
    expires: float | datetime | None = None
    """Seconds after the enqueue, or a time."""
    queue: str = DEFAULT_QUEUE
    tags: tuple[str, ...] = ()
    params: Mapping[str, Any] = field(default_factory=dict)
    correlation_id: str | None = None
    idempotency_key: str | None = None
    business_key: str | None = None
    on_conflict: OnConflict = "raise"
    resource: str | None = None
    resource_key: str | None = None
    circuit: str | None = None
    executor: Executor | None = None
    encrypted: bool = False
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
    retry_on: tuple[type[BaseException], ...] | Unset | None = UNSET
    give_up_on: tuple[type[BaseException], ...] | Unset | None = UNSET
    timeout: float | Unset | None = UNSET
    delay: float | Unset | None = UNSET
    run_at: datetime | Unset | None = UNSET
    expires: float | datetime | Unset | None = UNSET
    queue: str | Unset = UNSET
    tags: tuple[str, ...] | Unset = UNSET
    params: Mapping[str, Any] | Unset = UNSET
    correlation_id: str | Unset | None = UNSET
    idempotency_key: str | Unset | None = UNSET
    business_key: str | Unset | None = UNSET
    on_conflict: OnConflict | Unset = UNSET
    resource: str | Unset | None = UNSET
    resource_key: str | Unset | None = UNSET
    circuit: str | Unset | None = UNSET
    executor: Executor | Unset | None = UNSET
    encrypted: bool | Unset = UNSET
    on_success: Callback | Unset | None = UNSET
    on_failure: Callback | Unset | None = UNSET
    connection: Any = field(default=UNSET, repr=False)
    """The caller's connection, for one submission: the only option that is never stored."""

    @classmethod
    def make(cls, **options: Unpack[JobOptionsDict]) -> Self:
        """Check options given by a user; the error names the option, what came and what is expected."""
        given: dict[str, Any] = {}
        for name, value in options.items():
            check = CHECKS.get(name)
            if check is None:
                raise InvalidOptionError(_unknown(name))
            given[name] = value if value is UNSET else _checked(name, check, value)
        if _is_given(given.get("delay", UNSET)) and _is_given(given.get("run_at", UNSET)):
            raise InvalidOptionError(
                f"give delay or run_at, not both: got delay={options['delay']!r} and run_at={options['run_at']!r}"
            )
        return cls(**given)

    def merged(self, over: "JobOptions") -> "JobOptions":
        """Return these options overridden by those set in `over`; `delay` and `run_at` replace each other."""
        given = {name: value for name in _NAMES if (value := getattr(over, name)) is not UNSET}
        if not given:
            return self
        if "delay" in given or "run_at" in given:
            given = {"delay": UNSET, "run_at": UNSET, **given}
        return replace(self, **given)

    def resolved(self) -> ResolvedOptions:
        """Return plain values, defaults filled in."""
        given = {name: value for name in _NAMES if (value := getattr(self, name)) is not UNSET}
        given.pop("connection", None)
        if given.get("delay", UNSET) is None:
            del given["delay"]
        if given.get("resource_key") is not None and given.get("resource") is None:
            raise InvalidOptionError(
                f"resource_key needs a resource, got resource_key={given['resource_key']!r} alone; "
                "add the resource whose permits it shares, e.g. resource='stripe'"
            )
        resolved = ResolvedOptions(**given)
        _check_expires_after_due(resolved)
        return resolved


_NAMES: Final = tuple(option.name for option in fields(JobOptions))


def _checked(name: str, check: Callable[[object], Any], value: object) -> Any:
    try:
        return check(value)
    except WindlassError:
        raise
    except Exception as error:  # code of the value's class ran: a lazy proxy, a repr that follows endless lists
        raise InvalidOptionError(
            f"{name} cannot be {type(value).__name__}: reading it raised {type(error).__name__}; pass a plain value"
        ) from error


def _is_given(value: object) -> bool:
    return value is not UNSET and value is not None


def _check_expires_after_due(options: ResolvedOptions) -> None:
    """Compare both if they use the same clock: seconds after the enqueue, or times."""
    expires, run_at = options.expires, options.run_at
    if expires is None:
        return
    due: float | datetime
    if isinstance(expires, datetime):
        if run_at is None or expires > run_at:
            return
        name, due = "run_at", run_at
    else:
        if run_at is not None or expires > options.delay:
            return
        name, due = "delay", options.delay
    raise InvalidOptionError(
        f"expires must come after {name}, or the job could never start: got expires={expires!r} and {name}={due!r}"
    )


def _unknown(name: str) -> str:
    if name in OPTIONS:
        return f"unknown option {name!r}; it is called {OPTIONS[name]!r} here"
    if name in ("name", "aliases"):
        return f"{name} belongs on the decorator, e.g. @app.job({name}=...), and cannot be changed for one call"
    close = difflib.get_close_matches(name, _NAMES, n=1)
    if close:
        return f"unknown option {name!r}; did you mean {close[0]!r}?"
    return f"unknown option {name!r}; the options are {', '.join(_NAMES)}"
