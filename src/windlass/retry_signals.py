"""Exceptions that a job's body raises to control its retries, and the mark that forbids a retry for a class.

`DoNotRetry` (= `NonRetryable`) fails the job for good; `RetryAfter` sets the delay before the next attempt. They are
instructions to Windlass rather than errors of it, hence their names.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar, overload

from windlass.errors import ConfigurationError, InvalidOptionError, WindlassError

__all__ = ["DoNotRetry", "NonRetryable", "RetryAfter", "do_not_retry", "mark_of"]

_MARK = "__windlass_do_not_retry__"
_LONGEST = timedelta(days=100 * 366)

_E = TypeVar("_E", bound=BaseException)


class DoNotRetry(WindlassError):
    """Raised by a job's body, or anywhere behind what it raises: fail now, whatever retries are left.

    Behind it means causes, contexts and members of exception groups: all that a printed traceback would show.

    Example: `raise DoNotRetry("the card was reported stolen")`
    """


NonRetryable = DoNotRetry


class RejectItem(WindlassError):
    """Raised by a step: gives up the item at hand without a retry, and lets its execution go on.

    Example: `raise RejectItem("the line has no price")`
    """


class RetryAfter(WindlassError):
    """Raised by a job's body: this attempt failed, and `delay` replaces the job's backoff before the next one.

    It spends an attempt like any other failure, and counts inside groups and chains too: in a chain the outermost one,
    in a group the longest. Example: `raise RetryAfter(30, "rate limited")`
    """

    def __init__(self, delay: float | timedelta, message: str = "") -> None:
        super().__init__(delay, message)
        self.delay = _retry_delay(delay)
        self.message = message

    def __str__(self) -> str:
        return self.message or f"retry after {self.delay.total_seconds():g} s"


def _retry_delay(delay: object) -> timedelta:
    span: timedelta | None = None
    if isinstance(delay, timedelta):
        span = delay
    elif isinstance(delay, int | float) and not isinstance(delay, bool) and 0 <= delay <= _LONGEST.total_seconds():
        span = timedelta(seconds=delay)
    if span is None or not timedelta(0) <= span <= _LONGEST:
        raise InvalidOptionError(
            f"RetryAfter: delay must be seconds from 0 up to 100 years, or a timedelta of that size, got {delay!r}"
        )
    return span


@overload
def do_not_retry(marked: type[_E], /) -> type[_E]: ...
@overload
def do_not_retry(reason: str = "", /) -> Callable[[type[_E]], type[_E]]: ...
def do_not_retry(target: Any = "", /) -> Any:
    """Mark an exception class and its subclasses as not to be retried; the reason is logged.

    ```python
    @do_not_retry("a declined card stays declined")
    class CardDeclined(Exception): ...

    @do_not_retry
    class MalformedOrder(ValueError): ...
    ```
    """
    if isinstance(target, str):
        return lambda marked: _mark(marked, target)
    return _mark(target, "")


def _mark(marked: Any, reason: str) -> Any:
    if not (isinstance(marked, type) and issubclass(marked, BaseException)):
        raise ConfigurationError(f"@do_not_retry goes on an exception class, or takes a reason text; got {marked!r}")
    try:
        setattr(marked, _MARK, reason)
    except TypeError:
        raise ConfigurationError(
            f"@do_not_retry cannot mark the built-in {marked.__name__}; mark a subclass, or raise DoNotRetry from it"
        ) from None
    return marked


def mark_of(kind: type[BaseException]) -> str | None:
    """Return the reason given to `@do_not_retry` on a class or its base ("" for the bare mark); None without one."""
    reason = getattr(kind, _MARK, None)
    return None if reason is None else str(reason)
