"""Outlets as users give them: objects with `deliver`, and functions, which become one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from windlass.domain.deliveries import Delivery
from windlass.errors import InvalidOptionError
from windlass.spi import Outlet

Place: TypeAlias = Outlet | Callable[[Delivery], object]
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
        self.function(delivery)


def checked_outlet(value: Any, what: str) -> Outlet:
    """Return what was given as an outlet; a function becomes one. `what` names the option in the error."""
    if not isinstance(value, str | type):
        if callable(getattr(value, "deliver", None)):
            outlet: Outlet = value
            return outlet
        if callable(value):
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
