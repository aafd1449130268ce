"""Values that raise when they are looked at, or are nested too deeply."""

from typing import Any


class Proxy:
    """A lazy proxy outside of its context, as werkzeug and Django have them."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError("working outside of request context")


class ClosedMapping(dict[str, int]):
    """A mapping of a session that is closed."""

    def __iter__(self) -> Any:
        raise ConnectionError("the session is closed")

    def items(self) -> Any:
        raise ConnectionError("the session is closed")


def nested(depth: int) -> Any:
    """Lists in lists."""
    value: Any = []
    for _ in range(depth - 1):
        value = [value]
    return value


def nested_dicts(depth: int) -> Any:
    """Dicts in dicts."""
    value: Any = {}
    for _ in range(depth - 1):
        value = {"a": value}
    return value
