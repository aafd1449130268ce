"""What a feature brings to an application and its nodes, which take a list of them and know none by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from windlass.stores.dialect import Dialect
from windlass.stores.ending import FollowUp
from windlass.stores.plan import Plan

PurgePlan = Callable[[Dialect, int, int], Plan[int]]
"""Deletes up to so many rows (the second number) older than so many microseconds; answers how many it deleted."""


class Purge(NamedTuple):
    """Something that is deleted when it is old, at times of day."""

    what: str
    """Its name in the log, and of its lease: `dead letters`."""
    plan: PurgePlan
    age: float
    """Seconds."""
    cron: str | None
    """When, in UTC; None: never."""


class Feature(NamedTuple):
    """One feature, as its own package exports it."""

    name: str
    follow_ups: tuple[FollowUp, ...] = ()
    """What it writes where jobs end or are revived, by whomever."""
    purges: tuple[Purge, ...] = ()
    """What of it is deleted when it is old."""
