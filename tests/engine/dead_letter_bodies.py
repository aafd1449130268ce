"""What only tests of dead letters need: bodies and a serializer that make jobs die in odd ways."""

from typing import Any

from windlass.submission.codec import JsonSerializer

BROKEN: set[int] = set()
"""Orders that cannot be shipped at present."""


def raise_a_long_name() -> None:
    raise type("Strange" * 1000 + "Error", (Exception,), {})("named by a machine")


def ship(order: int) -> str:
    """Fail as long as the order is broken."""
    if order in BROKEN:
        raise ValueError(f"order {order} has no address")
    return f"shipped {order}"


class Unstorable(JsonSerializer):
    """A user's own serializer, whose text for one value no database accepts."""

    def encode_result(self, value: Any, annotation: Any, limit: int) -> tuple[str | None, str | None]:
        return ('"nul \0 byte"', None) if value == "bad" else super().encode_result(value, annotation, limit)
