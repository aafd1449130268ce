"""What the driver sees of the store while it runs: how far the work is, and jobs that run without a live owner."""

import sqlite3
from typing import NamedTuple

import psycopg

from tests.chaos.application import SettableClock
from tests.chaos.facts import Orphan
from tests.support.facts import is_sqlite, now_of, rows
from windlass.domain.clock import micros, monotonic

_LIVE = """SELECT (SELECT count(*) FROM windlass_hot) + (
    SELECT count(*) FROM windlass_handoff WHERE status = 'WAITING')"""
_ENDED = "SELECT count(*) FROM windlass_done"
_ORPHANS = """SELECT h.id, h.fence FROM windlass_hot h
    LEFT JOIN windlass_node n ON n.id = h.node AND n.state = 'alive' AND n.lease_until >= {now}
    WHERE h.status = 'RUNNING' AND n.id IS NULL"""


class Sight(NamedTuple):
    """How many jobs live or wait to be admitted, and how many have ended."""

    live: int
    ended: int


class Watch:
    """Looks now and then, past the code under test."""

    def __init__(self, url: str, clock: SettableClock | None, limit: float) -> None:
        self._url = url
        self._clock = clock
        self._limit = limit
        self._first_seen: dict[tuple[str, int], float] = {}
        self.orphans: dict[tuple[str, int], float] = {}
        """Claims without a live lease for longer than `limit`, and for how long."""

    def look(self) -> Sight | None:
        """None while the database is away: then no node can renew or take over, and all waits start again."""
        try:
            self._look_for_orphans()
            return Sight(rows(self._url, _LIVE)[0][0], rows(self._url, _ENDED)[0][0])
        except (psycopg.OperationalError, sqlite3.OperationalError):
            self._first_seen.clear()
            return None

    def begin_anew(self) -> None:
        """After a jump of the clock every lease looks over for a moment."""
        self._first_seen.clear()

    def found(self) -> tuple[Orphan, ...]:
        return tuple(Orphan(job, fence, seconds) for (job, fence), seconds in self.orphans.items())

    def _look_for_orphans(self) -> None:
        seen = {(str(job), fence) for job, fence in rows(self._url, _ORPHANS.format(now=self._now()))}
        now = monotonic()
        self._first_seen = {claim: self._first_seen.get(claim, now) for claim in seen}
        for claim, since in self._first_seen.items():
            if now - since > self._limit:
                self.orphans[claim] = now - since

    def _now(self) -> str:
        if self._clock is not None:
            return str(micros(self._clock.now()))
        return f"CAST({now_of(self._url)} AS bigint)" if is_sqlite(self._url) else now_of(self._url)
