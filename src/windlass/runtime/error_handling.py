"""Error handling of a service: log each kind of error once, back off, never end."""

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from windlass import loggers
from windlass.domain.clock import monotonic
from windlass.runtime.service_errors import ServiceErrors
from windlass.runtime.signals import Signal

_log = loggers.logger("windlass.service")

MAX_LOGGED = 5
"""Number of errors that a service logs at most within `LOG_WINDOW` seconds."""
LOG_WINDOW = 60.0


def class_name(error: BaseException) -> str:
    """Return an error's class name: its message may contain secrets."""
    return type(error).__name__


@dataclass(frozen=True, slots=True)
class ErrorHandling:
    """How a service handles errors: the delay after each, and how they are logged."""

    first_delay: float = 0.1
    """Seconds to wait after the first error; each further one doubles it."""
    max_delay: float = 5.0
    """Longest delay between two attempts."""
    describe: Callable[[BaseException], str] = class_name
    """Returns an error's text for the log; workers pass their sanitizer."""
    logger: logging.Logger = _log
    """Where errors and recoveries are logged."""
    service_errors: ServiceErrors | None = None
    """Where errors are kept for health reports until their service works again."""

    def keep(self, service: str, text: str | None) -> None:
        """Record a problem that does not fail the service; None clears it."""
        if self.service_errors is not None:
            self.service_errors.put(service, text)


DEFAULT_ERRORS = ErrorHandling()


@dataclass(frozen=True, slots=True)
class ServiceSignals:
    """Signals that a test may wait for."""

    ticked: Signal[float | None] = field(default_factory=Signal)
    """A tick has succeeded; the value is how long the service wants to sleep."""
    failed: Signal[BaseException] = field(default_factory=Signal)
    """A tick has raised."""
    stopped: Signal[None] = field(default_factory=Signal)
    """The service has stopped."""


def described(handling: ErrorHandling, error: BaseException) -> str:
    """Return an error's text for the log and for health reports."""
    try:
        return handling.describe(error)
    except Exception:  # noqa: BLE001 - a failing description must not end the service
        return class_name(error)


class ErrorGuard:
    """Counts consecutive errors of one service and logs the new ones, rate limited when they come and go."""

    def __init__(self, name: str, handling: ErrorHandling) -> None:
        self._name = name
        self._handling = handling
        self._kinds_logged: set[type[BaseException]] = set()
        self._failures = 0
        self._logged_at: deque[float] = deque(maxlen=MAX_LOGGED)
        self._limit_reached = False

    def failed(self, error: BaseException) -> float:
        """Log the error if its kind is new since the last success; return the seconds until the next attempt."""
        handling = self._handling
        # The exponent is capped because 2.0 ** 1024 overflows, which a day without a database reaches.
        delay = min(handling.first_delay * 2.0 ** min(self._failures, 30), handling.max_delay)
        self._failures += 1
        text = described(handling, error)
        if handling.service_errors is not None:
            handling.service_errors.failed(self._name, error, text)
        if type(error) not in self._kinds_logged and self._may_log():
            self._kinds_logged.add(type(error))
            handling.logger.error(
                "%s failed, trying again (next in %.1f s): %s%s",
                self._name,
                delay,
                text,
                f" (this error comes and goes; it is not logged for the next {LOG_WINDOW:g} s)"
                if self._limit_reached
                else "",
            )
        return delay

    def succeeded(self) -> None:
        """Reset the count, and log the recovery if an error was logged."""
        if self._failures:
            if self._kinds_logged:
                self._handling.logger.info("%s works again after %d failures", self._name, self._failures)
            self._failures = 0
            self._kinds_logged.clear()
            self._handling.keep(self._name, None)

    def _may_log(self) -> bool:
        """Return whether the rate limit allows a log line: a flapping database must not fill the disk."""
        now = monotonic()
        if len(self._logged_at) == MAX_LOGGED and now - self._logged_at[0] < LOG_WINDOW:
            return False
        self._logged_at.append(now)
        self._limit_reached = len(self._logged_at) == MAX_LOGGED and now - self._logged_at[0] < LOG_WINDOW
        return True
