"""A subscription and how its function is called: its name for the log, sync or async, errors logged."""

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
class Subscription:
    """A function and the event class it subscribes to."""

    event_type: type[Event]
    function: Function
    is_async: bool
    name: str

    @classmethod
    def of(cls, event_type: type[Event], function: Function) -> "Subscription":
        """Inspect a function once, so that calls need no inspection."""
        is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004 - not "is it callable", but what its call is
        )
        return cls(event_type, function, is_async, _name(function))


class EventDelivery(NamedTuple):
    """One event to be delivered to one subscription."""

    subscription: Subscription
    event: Event


class Caller:
    """Calls subscribers; an error is logged and does not affect the others."""

    def __init__(self, describe: Describe) -> None:
        self._describe = describe

    def call(self, call: EventDelivery, finish: Callable[[Awaitable[object]], object]) -> None:
        """Call a subscriber from a thread; `finish` waits for its result if that is awaitable."""
        try:
            result = call.subscription.function(call.event)
            if inspect.isawaitable(result):
                finish(result)
        except BaseException as error:  # noqa: BLE001 - not even SystemExit may end the delivery of events
            self._log(call, error)

    async def acall(self, call: EventDelivery) -> None:
        """Call a subscriber on the loop."""
        try:
            result = call.subscription.function(call.event)
            if inspect.isawaitable(result):
                await result
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            self._log(call, error)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - not KeyboardInterrupt, which here comes from the user
            self._log(call, error)

    def _log(self, call: EventDelivery, error: BaseException) -> None:
        try:
            text = self._describe(error)
        except Exception:  # noqa: BLE001 - a failing description must not end the delivery either
            text = type(error).__name__
        logger.error("event subscriber %s failed on %s: %s", call.subscription.name, type(call.event).__name__, text)


def _name(function: Function) -> str:
    inner: Any = inspect.unwrap(getattr(function, "func", function))
    name = getattr(inner, "__qualname__", None) or type(inner).__qualname__
    return f"{getattr(inner, '__module__', '?')}.{name}"
