"""What a service does about its own errors: say each kind once, wait longer each time, never end."""

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from windlass import loggers
from windlass.domain.clock import monotonic
from windlass.runtime.service_errors import ServiceErrors
from windlass.runtime.signals import Signal

_log = loggers.logger("windlass.service")

MOST_SAID = 5
"""Troubles a service may speak of within `SAID_WITHIN` seconds."""
SAID_WITHIN = 60.0


def class_name(error: BaseException) -> str:
    """Describe an error without its message, which may hold secrets."""
    return type(error).__name__


@dataclass(frozen=True, slots=True)
class ErrorHandling:
    """How a service bears errors: how long it waits after one, and how it words them in the log."""

    first_delay: float = 0.1
    """Seconds to wait after the first error; each further one doubles it."""
    max_delay: float = 5.0
    """Longest wait between tries."""
    describe: Callable[[BaseException], str] = class_name
    """Gives an error's text for the log; workers pass their sanitizer."""
    logger: logging.Logger = _log
    """Where errors and recoveries are logged."""
    service_errors: ServiceErrors | None = None
    """Where errors are kept until their service works again, for health."""

    def keep(self, service: str, text: str | None) -> None:
        """Keep what a service meets without failing; None: it is over."""
        if self.service_errors is not None:
            self.service_errors.put(service, text)


DEFAULT_ERRORS = ErrorHandling()


@dataclass(frozen=True, slots=True)
class ServiceSignals:
    """What a test may wait for."""

    ticked: Signal[float | None] = field(default_factory=Signal)
    """A tick has ended well; the value is how long the service wants to sleep."""
    failed: Signal[BaseException] = field(default_factory=Signal)
    """A tick has raised."""
    stopped: Signal[None] = field(default_factory=Signal)
    """The service has ended."""


def described(handling: ErrorHandling, error: BaseException) -> str:
    """An error's text for the log and for health."""
    try:
        return handling.describe(error)
    except Exception:  # noqa: BLE001 - wording an error must not be what ends the service
        return class_name(error)


class ErrorGuard:
    """Counts the errors of one service in a row, and says of them what is new, in few words when they come and go."""

    def __init__(self, name: str, handling: ErrorHandling) -> None:
        self._name = name
        self._handling = handling
        self._kinds_said: set[type[BaseException]] = set()
        self._failures = 0
        self._said_at: deque[float] = deque(maxlen=MOST_SAID)
        self._silent = False

    def failed(self, error: BaseException) -> float:
        """Log the error if its kind is new since the last good tick; give the seconds to wait before the next try."""
        handling = self._handling
        # The exponent is capped because 2.0 ** 1024 overflows, which a day without a database reaches.
        delay = min(handling.first_delay * 2.0 ** min(self._failures, 30), handling.max_delay)
        self._failures += 1
        text = described(handling, error)
        if handling.service_errors is not None:
            handling.service_errors.failed(self._name, error, text)
        if type(error) not in self._kinds_said and self._may_speak():
            self._kinds_said.add(type(error))
            handling.logger.error(
                "%s failed, trying again (next in %.1f s): %s%s",
                self._name,
                delay,
                text,
                f" (this comes and goes: for the next {SAID_WITHIN:g} s it is not logged)" if self._silent else "",
            )
        return delay

    def succeeded(self) -> None:
        """Forget earlier errors, and say that they are over."""
        if self._failures:
            if self._kinds_said:
                self._handling.logger.info("%s works again after %d failed tries", self._name, self._failures)
            self._failures = 0
            self._kinds_said.clear()
            self._handling.keep(self._name, None)

    def _may_speak(self) -> bool:
        """A database that is gone and back ten times a second must not fill a disk with the news."""
        now = monotonic()
        if len(self._said_at) == MOST_SAID and now - self._said_at[0] < SAID_WITHIN:
            return False
        self._said_at.append(now)
        self._silent = len(self._said_at) == MOST_SAID and now - self._said_at[0] < SAID_WITHIN
        return True
