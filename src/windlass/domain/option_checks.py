"""Checks of a job's options: each returns the value as it is used, or raises an error that says what is wrong."""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, Literal, Protocol, TypeVar, cast, runtime_checkable

from windlass.domain.backoff import Backoff
from windlass.domain.caller_connections import check_connection
from windlass.domain.durations import seconds
from windlass.domain.keys import check_key, check_name, check_params, check_queue, check_tags
from windlass.domain.priority import parse_priority
from windlass.errors import InvalidOptionError

MAX_RETRIES: Final = 1_000

OnConflict = Literal["raise", "return_existing", "replace"]
Executor = Literal["async", "thread", "process"]

_T = TypeVar("_T")


@runtime_checkable
class BoundCall(Protocol):
    """A target with arguments, e.g. `clean_up.bind(RESULT, 7)`."""

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
"""What can follow a job: a job, a function that the target policy allows, or a call."""


def _check_max_retries(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_RETRIES:
        return int(value)
    raise InvalidOptionError(f"max_retries must be an integer from 0 to {MAX_RETRIES}, got {value!r}")


def _check_backoff(value: object) -> Backoff:
    if isinstance(value, Backoff):
        return value
    hint = f"Backoff.fixed({value!r})" if isinstance(value, int | float) else "Backoff.exponential(1)"
    raise InvalidOptionError(f"backoff must be a Backoff, got {value!r}; write {hint} or Backoff.none()")


def _error_classes(name: str) -> Callable[[object], tuple[type[BaseException], ...]]:
    def check(value: object) -> tuple[type[BaseException], ...]:
        several = isinstance(value, Iterable) and not isinstance(value, type | str)
        given: tuple[object, ...] = tuple(cast("Iterable[object]", value)) if several else (value,)
        classes = tuple(kind for kind in given if isinstance(kind, type) and issubclass(kind, BaseException))
        if len(classes) < len(given):
            wrong = next(kind for kind in given if kind not in classes)
            hint = f"; write the class, {type(wrong).__name__}" if isinstance(wrong, BaseException) else ""
            raise InvalidOptionError(
                f"{name} must be an exception class or several, e.g. (ConnectionError, TimeoutError), "
                f"got {wrong!r}{hint}"
            )
        return classes

    return check


def _check_retry_on(value: object) -> tuple[type[BaseException], ...]:
    classes = _error_classes("retry_on")(value)
    if not classes:
        raise InvalidOptionError(
            f"retry_on must name at least one exception class, got {value!r}; "
            "retry_on=None retries after any error, max_retries=0 after none"
        )
    return classes


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
    return _aware(value, "run_at")


def _aware(value: datetime, name: str) -> datetime:
    if value.utcoffset() is None:
        raise InvalidOptionError(f"{name} must have a time zone, got the naive {value!r}; add e.g. tzinfo=datetime.UTC")
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise InvalidOptionError(f"{name} must lie between the years 1 and 9999 in UTC, got {value!r}") from None


def _check_expires(value: object) -> float | datetime:
    if isinstance(value, datetime):
        return _aware(value, "expires")
    limit = seconds(value, "expires")
    if limit == 0:
        raise InvalidOptionError(f"expires must be more than 0 seconds, got {value!r}; expires=None means never")
    return limit


def _check_on_conflict(value: object) -> OnConflict:
    if value in ("raise", "return_existing", "replace"):
        return value
    raise InvalidOptionError(f"on_conflict must be 'raise', 'return_existing' or 'replace', got {value!r}")


def _check_executor(value: object) -> Executor:
    if value in ("async", "thread", "process"):
        return value
    raise InvalidOptionError(f"executor must be 'async', 'thread' or 'process', got {value!r}")


def _check_encrypted(value: object) -> bool:
    if value is False:
        return False
    if value is True:
        raise InvalidOptionError(
            "encrypted=True: this version cannot encrypt payloads yet, and stores nothing in plain text that was to be "
            "encrypted; leave it out, or store the data elsewhere and pass its id"
        )
    raise InvalidOptionError(f"encrypted must be True or False, got {value!r}")


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


def _name(name: str) -> Callable[[object], str]:
    return lambda value: check_name(value, name)


def _or_none(check: Callable[[object], _T]) -> Callable[[object], _T | None]:
    return lambda value: None if value is None else check(value)


CHECKS: Final[Mapping[str, Callable[[object], Any]]] = {
    "priority": parse_priority,
    "max_retries": _check_max_retries,
    "backoff": _check_backoff,
    "retry_on": _or_none(_check_retry_on),
    "give_up_on": _or_none(_error_classes("give_up_on")),
    "timeout": _or_none(_check_timeout),
    "delay": _or_none(_check_delay),
    "run_at": _or_none(_check_run_at),
    "expires": _or_none(_check_expires),
    "queue": check_queue,
    "tags": check_tags,
    "params": check_params,
    "correlation_id": _or_none(_key("correlation_id")),
    "idempotency_key": _or_none(_key("idempotency_key")),
    "business_key": _or_none(_key("business_key")),
    "on_conflict": _check_on_conflict,
    "resource": _or_none(_name("resource")),
    "resource_key": _or_none(_key("resource_key")),
    "circuit": _or_none(_name("circuit")),
    "executor": _or_none(_check_executor),
    "encrypted": _check_encrypted,
    "on_success": _or_none(_callback("on_success")),
    "on_failure": _or_none(_callback("on_failure")),
    "connection": _or_none(check_connection),
}
"""The checks by name of option."""
