"""The options of one step of a pipeline: their bounds, how layers of them are merged, and the wait before a retry."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from typing import Any, Final, NamedTuple, TypedDict

from windlass.domain.durations import seconds
from windlass.domain.keys import check_name
from windlass.domain.option_checks import MAX_RETRIES
from windlass.domain.suggestions import closest
from windlass.errors import InvalidOptionError, WindlassError

MAX_CONCURRENCY: Final = 1_024
MAX_BUFFER: Final = 10_000

_MAX_EXPONENT: Final = 900
"""Doubled so often, even the longest wait is still a float; attempts beyond it wait as long."""
_JOB_OPTIONS: Final = {
    "max_retries": "retry_limit",
    "retries": "retry_limit",
    "backoff": "retry_wait",
    "delay": "retry_wait",
    "max_concurrency": "concurrency",
    "recover": "recover_on_failure",
}
"""What other parts of Windlass, and other libraries, call these options."""


class WaitOptionsDict(TypedDict, total=False):
    """The options of a step that waits outside: its `timeout` is how long it waits."""

    retry_limit: int
    retry_wait: float | timedelta
    max_backoff: float | timedelta
    jitter: bool
    recover_on_failure: bool
    concurrency: int
    ordered: bool
    buffer: int
    circuit: str | None
    resource: str | None


class StepOptionsDict(WaitOptionsDict, total=False):
    """The options as keywords, for `**options: Unpack[StepOptionsDict]`."""

    timeout: float | timedelta | None


class StepCheck(NamedTuple):
    """How one option is checked."""

    allowed: str
    """What it must be, to complete "must be"."""
    check: Callable[[Any], Any]
    """Returns the value as it is kept, or raises `InvalidOptionError`."""


def _whole(name: str, lowest: int, highest: int) -> StepCheck:
    allowed = f"a whole number from {lowest} to {highest}"

    def check(value: Any) -> int:
        if isinstance(value, int) and not isinstance(value, bool) and lowest <= value <= highest:
            return int(value)
        raise InvalidOptionError(f"{name} must be {allowed}, got {value!r}")

    return StepCheck(allowed, check)


def check_switch(name: str) -> Callable[[object], bool]:
    """Return the check of an option that is True or False."""

    def check(value: object) -> bool:
        if isinstance(value, bool):
            return value
        raise InvalidOptionError(f"{name} must be True or False, got {value!r}")

    return check


def _switch(name: str) -> StepCheck:
    return StepCheck("true or false", check_switch(name))


def _name(name: str) -> StepCheck:
    allowed = 'a name of 1 to 64 letters, digits and _ . : -, or None ("none" in files and variables)'
    return StepCheck(allowed, lambda value: None if value is None else check_name(value, name))


def _check_timeout(value: Any) -> float | None:
    if value is None:
        return None
    limit = seconds(value, "timeout")
    if limit == 0:
        raise InvalidOptionError(
            f"timeout must be more than 0 seconds, got {value!r}; timeout=None applies the setting jobs.timeout"
        )
    return limit


STEP_CHECKS: Final[Mapping[str, StepCheck]] = {
    "retry_limit": _whole("retry_limit", 0, MAX_RETRIES),
    "retry_wait": StepCheck("seconds or a timedelta, 0 or more", lambda value: seconds(value, "retry_wait")),
    "max_backoff": StepCheck("seconds or a timedelta, 0 or more", lambda value: seconds(value, "max_backoff")),
    "jitter": _switch("jitter"),
    "recover_on_failure": _switch("recover_on_failure"),
    "concurrency": _whole("concurrency", 1, MAX_CONCURRENCY),
    "ordered": _switch("ordered"),
    "buffer": _whole("buffer", 1, MAX_BUFFER),
    "timeout": StepCheck('seconds or a timedelta above 0, or None ("none" in files and variables)', _check_timeout),
    "circuit": _name("circuit"),
    "resource": _name("resource"),
}
"""The checks by name of option."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOptions:
    """The options of a step, each with a value.

    ```python
    merged(StepOptions(), {"retry_limit": 2}).delay_after(1, lambda: 1.0) == 1.0
    ```
    """

    retry_limit: int = 5
    """Number of retries after the first attempt."""
    retry_wait: float = 1.0
    """Seconds before the first retry; each further wait is twice as long."""
    max_backoff: float = 30.0
    """Longest wait before a retry, in seconds."""
    jitter: bool = True
    """Whether a wait is a random part of its full length."""
    recover_on_failure: bool = False
    """Whether an item that has used up its retries is rejected, and its execution continues."""
    concurrency: int = 128
    """Number of items of one execution that the step runs at a time, in the whole cluster."""
    ordered: bool = False
    """Whether items run one at a time, in their order."""
    buffer: int = 128
    """Number of items between two commits, and of a page that a reduction reads."""
    timeout: float | None = None
    """Seconds that one attempt may run; None: the setting `jobs.timeout` applies."""
    circuit: str | None = None
    """The circuit that every item passes."""
    resource: str | None = None
    """The resource of which every item holds a permit."""

    def __post_init__(self) -> None:
        for name, option in STEP_CHECKS.items():
            object.__setattr__(self, name, option.check(getattr(self, name)))

    def delay_after(self, attempt: int, random: Callable[[], float]) -> float:
        """Return the seconds to wait after failed attempt number `attempt` (the first is 1).

        `random` returns numbers from 0 to 1 for the jitter.
        """
        if attempt < 1:
            raise InvalidOptionError(f"attempt counts from 1 (the first failure), got {attempt!r}")
        longest = min(math.ldexp(self.retry_wait, min(attempt - 1, _MAX_EXPONENT)), self.max_backoff)
        return longest * random() if self.jitter else longest


STEP_OPTION_NAMES: Final = tuple(option.name for option in fields(StepOptions))


def check_step_options(given: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Check options that a user gave at `where`, e.g. "step 'price'", and return them in the form they are kept in."""
    checked: dict[str, Any] = {}
    for name, value in given.items():
        option = STEP_CHECKS.get(name)
        if option is None:
            raise InvalidOptionError(f"{where}: unknown option {name!r}{_suggestion(name)}")
        checked[name] = checked_option(where, name, option.check, value)
    return checked


def merged(base: StepOptions, given: Mapping[str, Any]) -> StepOptions:
    """Return `base` with the checked options of `given` in place of its own."""
    return replace(base, **given) if given else base


def checked_option(where: str, name: str, check: Callable[[Any], Any], value: object) -> Any:
    """Return a value as its check keeps it; the error names the option and where it was given."""
    try:
        return check(value)
    except WindlassError as error:
        raise InvalidOptionError(f"{where}: {error}") from None
    except Exception as error:  # code of the value's class ran: a lazy proxy, a repr that raises
        raise InvalidOptionError(
            f"{where}: {name} cannot be {type(value).__name__}: reading it raised {type(error).__name__}; "
            "pass a plain value"
        ) from error


def _suggestion(name: str) -> str:
    if name in _JOB_OPTIONS:
        return f"; it is called {_JOB_OPTIONS[name]!r} here"
    close = closest(name, STEP_OPTION_NAMES)
    return f"; did you mean {close!r}?" if close else f"; the options are {', '.join(STEP_OPTION_NAMES)}"
