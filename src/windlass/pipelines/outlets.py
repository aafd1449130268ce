"""Outlets as users give them: objects with `deliver`, and functions, which become one."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from windlass.domain.deliveries import Delivery
from windlass.errors import InvalidOptionError
from windlass.spi import Outlet

Destination: TypeAlias = Outlet | Callable[[Delivery], object]
"""What users give as an outlet."""
DEFAULT_TIMEOUT: Final = 30.0
"""Seconds that one delivery may take where the outlet does not say."""


class FunctionOutlet:
    """Calls a function with every delivery."""

    def __init__(self, function: Callable[[Delivery], object]) -> None:
        self.function = function

    def __repr__(self) -> str:
        return getattr(self.function, "__qualname__", type(self.function).__qualname__)

    def deliver(self, delivery: Delivery, /) -> None:
        """Call the function."""
        refuse_awaitable(self.function(delivery), self)


def refuse_awaitable(returned: object, callee: object) -> None:
    """Raise `TypeError` if a call has returned something to be awaited: it has done nothing yet."""
    if not inspect.isawaitable(returned):
        return
    if inspect.iscoroutine(returned):
        returned.close()
    raise TypeError(
        f"{callee!r} returned {type(returned).__name__} instead of doing its work: it is called on a thread, where "
        "nothing awaits; give a plain function, e.g. one that calls asyncio.run"
    )


def is_async(function: object) -> bool:
    """Return whether calling a function only makes a coroutine."""
    call = getattr(type(function), "__call__", None)  # noqa: B004 - of an object that is called like a function
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


def refuse_async(function: object, what: str) -> None:
    """Raise `InvalidOptionError` for an async function; `what` names the option."""
    if is_async(function):
        raise InvalidOptionError(
            f"{what} must not be async, got {getattr(function, '__qualname__', type(function).__qualname__)}: it is "
            "called on a thread, where nothing awaits; give a plain function, e.g. one that calls asyncio.run"
        )


def deliver_to(outlet: Outlet, delivery: Delivery) -> None:
    """Pass a delivery to an outlet; raises what it raises, and `TypeError` if it has done nothing yet."""
    returned: object = outlet.deliver(delivery)  # type: ignore[func-returns-value] # users' code: it may return something
    refuse_awaitable(returned, outlet)


def checked_outlet(value: Any, what: str) -> Outlet:
    """Return what was given as an outlet; a function becomes one. `what` names the option in the error."""
    if not isinstance(value, str | type):
        if callable(getattr(value, "deliver", None)):
            refuse_async(value.deliver, f"{what}: its method deliver")
            outlet: Outlet = value
            return outlet
        if callable(value):
            refuse_async(value, what)
            return FunctionOutlet(value)
    raise InvalidOptionError(
        f"{what} must be an object with `deliver(delivery)`, e.g. windlass.HttpTarget(url), or a function that takes a "
        f"windlass.Delivery; got {type(value).__name__}"
    )


def timeout_of(outlet: Outlet) -> float:
    """Return the seconds after which one delivery counts as failed."""
    given = getattr(outlet, "timeout", None)
    if isinstance(given, int | float) and not isinstance(given, bool) and given > 0:
        return float(given)
    return DEFAULT_TIMEOUT
