"""A listener and how it is called: its name for the log, whether it is awaited, and that its failure is its own."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from windlass import loggers
from windlass.events.types import Event

logger = loggers.logger("windlass.events")

Function = Callable[[Any], object]
Describe = Callable[[BaseException], str]


@dataclass(frozen=True, slots=True, eq=False)
class Listener:
    """One subscription."""

    event_type: type[Event]
    function: Function
    is_async: bool
    name: str

    @classmethod
    def of(cls, event_type: type[Event], function: Function) -> "Listener":
        """Look at a function once, so that calling it needs no looking."""
        is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004 - not "is it callable", but what its call is
        )
        return cls(event_type, function, is_async, _name(function))


class Call(NamedTuple):
    """One listener to be told of one event."""

    listener: Listener
    event: Event


class Caller:
    """Calls listeners; what they raise is logged and stops nobody."""

    def __init__(self, describe: Describe) -> None:
        self._describe = describe

    def call(self, call: Call, finish: Callable[[Awaitable[object]], object]) -> None:
        """Call a listener from a thread; `finish` waits for what it gives, if that must be awaited."""
        try:
            result = call.listener.function(call.event)
            if inspect.isawaitable(result):
                finish(result)
        except BaseException as error:  # noqa: BLE001 - not even SystemExit may end the delivery of events
            self._log(call, error)

    async def acall(self, call: Call) -> None:
        """Call a listener on the loop."""
        try:
            result = call.listener.function(call.event)
            if inspect.isawaitable(result):
                await result
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            self._log(call, error)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - not KeyboardInterrupt, which here is the user's own
            self._log(call, error)

    def _log(self, call: Call, error: BaseException) -> None:
        try:
            text = self._describe(error)
        except Exception:  # noqa: BLE001 - wording an error must not end the delivery either
            text = type(error).__name__
        logger.error("listener %s failed on %s: %s", call.listener.name, type(call.event).__name__, text)


def _name(function: Function) -> str:
    inner: Any = inspect.unwrap(getattr(function, "func", function))
    name = getattr(inner, "__qualname__", None) or type(inner).__qualname__
    return f"{getattr(inner, '__module__', '?')}.{name}"
