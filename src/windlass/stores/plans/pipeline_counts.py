"""Plans that count executions and rejects by pipeline, each up to a limit: no large table is read to its end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan, Step

MOST_COUNTED: Final = 10_000
"""Number of rows at which a count stops."""
HOUR_US: Final = 3_600_000_000
_SINCE: Final = ((HOUR_US, 0), (2 * HOUR_US, HOUR_US))
"""The last hour, and the one before it, as microseconds before now."""
_ENDED: Final = ("SUCCEEDED", "FAILED", "DLQ")


class OpenCount(NamedTuple):
    """How many executions of a definition are open, counted up to a limit for each version."""

    pipeline: str
    version: str
    definition_hash: str
    number: int


class CountWindow(NamedTuple):
    """What was counted in one hour, by pipeline."""

    counts: Mapping[str, int]
    bounded: bool
    """Whether counting stopped before the end of the hour."""


class StoredCounts(NamedTuple):
    """The counts of all pipelines."""

    open: list[OpenCount]
    ended: Mapping[str, tuple[CountWindow, CountWindow]]
    """Ended executions by status, of the last hour and the hour before it."""
    rejected: tuple[CountWindow, CountWindow]


def overview(dialect: Dialect) -> Plan[StoredCounts]:
    """Return the counts of all pipelines."""
    found = yield from open_by_definition(dialect)
    ended = {}
    for status in _ENDED:
        ended[status] = yield from _hours("ended_lately", {"status": status})
    return StoredCounts(found, ended, (yield from _hours("rejected_lately", {})))


def open_by_definition(dialect: Dialect) -> Plan[list[OpenCount]]:
    """Return how many executions are open, by pipeline, version and hash; of each version at most 10,000 are read."""
    del dialect
    found: list[OpenCount] = []
    last = ("", "")
    while True:
        version = yield Step("next_open_version", {"pipeline": last[0], "version": last[1]}, autocommit=True)
        if version is None:
            return found
        last = (version[0], version[1])
        params = {"pipeline": last[0], "version": last[1]}
        rows = yield Step("open_of_version", params, autocommit=True, literals={"window": MOST_COUNTED})
        found += [OpenCount(*last, definition_hash, number) for definition_hash, number in rows]


def _hours(statement: str, params: Mapping[str, Any]) -> Plan[tuple[CountWindow, CountWindow]]:
    windows = []
    for since, until in _SINCE:
        given = {**params, "since_us": since, "until_us": until}
        rows = yield Step(statement, given, autocommit=True, literals={"window": MOST_COUNTED})
        counts = dict(rows)
        windows.append(CountWindow(counts, sum(counts.values()) >= MOST_COUNTED))
    return windows[0], windows[1]
