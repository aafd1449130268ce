"""The plan that searches alerts, which are written with the dead letters they count."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from windlass.domain.clock import END_OF_TIME
from windlass.domain.identity import LAST_ID
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan, Step

WINDOW: Final = 1000
MOST_READ: Final = 20_000
"""Largest number of rows that one page reads."""


class AlertFilters(NamedTuple):
    """What is searched for; None matches anything."""

    target: str | None = None
    error_hash: str | None = None
    error_class: str | None = None
    after: int | None = None
    """Raised at that time or later, in microseconds."""
    before: int | None = None
    aliases: frozenset[str] = frozenset()
    """Other names of the same target."""

    def fits(self, row: Sequence[Any]) -> bool:
        """Return whether an alert matches.

        The time it was raised is checked by the reader, which follows that order.
        """
        pairs = zip((self.error_hash, self.error_class), row[2:4], strict=True)
        fits = self.target is None or row[1] == self.target or row[1] in self.aliases
        return fits and all(asked is None or asked == has for asked, has in pairs)


AlertSpot = tuple[int, str]
"""A position in the order of alerts: when it was raised, and its id."""


def find(
    dialect: Dialect, filters: AlertFilters, spot: AlertSpot | None, limit: int
) -> Plan[tuple[list[Sequence[Any]], AlertSpot | None]]:
    """Return one page of matching alerts, latest first, and where the next one begins."""
    del dialect
    found: list[Sequence[Any]] = []
    # Times are whole microseconds: an alert raised before a moment sorts before the last id of the previous one.
    at, last = spot or (END_OF_TIME if filters.before is None else filters.before - 1, LAST_ID)
    for _ in range(MOST_READ // WINDOW):
        rows = yield Step("latest_alerts", {"at": at, "id": last}, literals={"window": WINDOW})
        for row in rows:
            last, at = row[0], row[8]
            if filters.after is not None and at < filters.after:
                return found, None
            if filters.fits(row):
                found.append(row)
                if len(found) == limit:
                    return found, (at, last)
        if len(rows) < WINDOW:
            return found, None
    return found, (at, last)
