"""At most one signal per interval: the first at once, the rest of a burst as one at its end."""

from enum import Enum
from typing import Final, NamedTuple

from windlass.errors import InvalidOptionError


class Action(Enum):
    """What the caller has to do."""

    SEND = "send"
    WAIT = "wait"
    NOTHING = "nothing"


class Decision(NamedTuple):
    """Send now; or call `due` at `until` and send then; or do nothing: a pending send covers this request."""

    action: Action
    until: float | None = None


SEND: Final = Decision(Action.SEND)
NOTHING: Final = Decision(Action.NOTHING)


class Throttle:
    """Decides when to send; the caller sends, keeps the time, and holds a lock if several threads use it.

    ```python
    throttle = Throttle(0.02)
    throttle.request(now=1.00)  # SEND
    throttle.request(now=1.01)  # WAIT until 1.02
    throttle.request(now=1.015)  # NOTHING: the one at 1.02 covers it
    throttle.due(now=1.02)  # True: send
    ```
    """

    __slots__ = ("_free_at", "_interval", "_pending")

    def __init__(self, interval: float) -> None:
        if not interval >= 0:
            raise InvalidOptionError(f"throttle interval must be seconds >= 0, got {interval!r}")
        self._interval = interval
        self._free_at = float("-inf")
        self._pending = False

    def request(self, now: float) -> Decision:
        """Request a send that is not earlier than `now`."""
        if self.may_send(now):
            return SEND
        if self._pending:
            return NOTHING
        self._pending = True
        return Decision(Action.WAIT, self._free_at)

    def may_send(self, now: float) -> bool:
        """Return whether a send is allowed now, and count it as sent if so; it covers pending requests."""
        if now < self._free_at:
            return False
        self._sent(now)
        return True

    def owe(self) -> None:
        """Note that a send that was counted did not happen: another one has to follow."""
        self._pending = True

    def due(self, now: float) -> bool:
        """Return whether the trailing send is due, and count it as sent if so."""
        if not self._pending or now < self._free_at:
            return False
        self._sent(now)
        return True

    def flush(self, now: float) -> bool:
        """Return whether a trailing send is pending, due or not, and count it as sent if so: for the exit."""
        owed = self._pending
        if owed:
            self._sent(now)
        return owed

    @property
    def pending_at(self) -> float | None:
        """When the trailing send is due, None while there is none."""
        return self._free_at if self._pending else None

    def _sent(self, now: float) -> None:
        self._free_at = now + self._interval
        self._pending = False
