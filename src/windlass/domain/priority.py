"""Priorities: a higher number is claimed first."""

from enum import IntEnum
from typing import Final

from windlass.errors import InvalidOptionError

MAX_PRIORITY: Final = 9


class Priority(IntEnum):
    """The named priorities; integers from 0 to 9 are accepted as well."""

    LOWEST = 0
    LOW = 1
    NORMAL = 2
    HIGH = 3
    CRITICAL = 4


def parse_priority(value: object) -> int:
    """Check a priority given by a user and return it as an integer.

    Example: `parse_priority(Priority.HIGH) == 3`
    """
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_PRIORITY:
        return int(value)
    hint = ""
    if isinstance(value, str) and value.strip().upper() in Priority.__members__:
        hint = f"; did you mean Priority.{value.strip().upper()}?"
    raise InvalidOptionError(f"priority must be a Priority or an integer from 0 to {MAX_PRIORITY}, got {value!r}{hint}")
