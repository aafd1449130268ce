"""What to re-drive, and how, checked."""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Final

from windlass.errors import InvalidOptionError
from windlass.stores.plans.triage import LetterFilters

BATCH: Final = 100
"""Number of jobs that are re-driven in one transaction."""
MOST: Final = 100_000
STOP_AT: Final = 0.5
"""Default share of failures beyond which a re-drive stops."""


@dataclass(frozen=True, slots=True)
class Order:
    """What to re-drive, and how."""

    filters: LetterFilters
    limit: int
    rate: float | None
    dry_run: bool
    stop_at: float | None
    """The share of failures beyond which it stops; None is `STOP_AT`."""
    note: str
    """Why it is done, for the audit log."""
    asked: Mapping[str, Any] = field(default_factory=dict)
    """The filters as they were given, for the audit log."""
    principal: str = ""
    """The principal that requested it, for the audit log."""
    wait: bool = False
    """Whether to wait until all have ended."""

    def __post_init__(self) -> None:
        limit: object = self.limit  # callers may not have respected its type
        if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MOST:
            raise InvalidOptionError(f"limit must be a whole number from 1 to {MOST:,}, got {self.limit!r}")
        if self.rate is not None and not (_is_number(self.rate) and self.rate > 0):
            raise InvalidOptionError(
                f"rate must be a number of jobs per second above 0, or None for no limit, got {self.rate!r}"
            )
        ratio = self.stop_at
        if ratio is not None and not (_is_number(ratio) and 0 <= ratio <= 1):
            raise InvalidOptionError(f"stop_at must be a share from 0 to 1, where 1 is never, got {ratio!r}")
        if not isinstance(self.wait, bool):
            raise InvalidOptionError(f"wait must be True or False, got {self.wait!r}")
        if not isinstance(self.note, str):
            raise InvalidOptionError(f"note must be a text for the audit log, got {self.note!r}")

    @property
    def ratio(self) -> float:
        """The share of failures beyond which it stops."""
        return STOP_AT if self.stop_at is None else self.stop_at

    @property
    def batch(self) -> int:
        """Jobs per transaction: with a rate, no more than a second's worth."""
        return BATCH if self.rate is None else max(1, min(BATCH, int(self.rate)))


def process_owner() -> str:
    """Return the user of this process, for the audit log."""
    try:
        user = getpass.getuser()
    except (ImportError, KeyError, OSError):  # a container's user need not have a name
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
