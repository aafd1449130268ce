"""Plans that search dead letters: pages, groups, and what to re-drive next.

A page reads a bounded number of rows along the index of one filter, in the order of failures, and checks the other
filters on the rows read. So it may come back short, even empty, and still have a next one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from windlass.domain.clock import END_OF_TIME
from windlass.domain.identity import FIRST_ID, LAST_ID
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan, Step

MOST_READ: Final = 20_000
"""Largest number of rows that one page, or the groups of a filter, read."""
SMALLEST_WINDOW: Final = 128
LARGEST_WINDOW: Final = 4096
OLDER: Final = {
    "any": "older_of_any",
    "fingerprint": "older_of_fingerprint",
    "target": "older_of_target",
    "error_class": "older_of_error_class",
    "queue": "older_of_queue",
    "reason": "older_of_reason",
    "kind": "older_of_kind",
}
NEWER: Final = {
    "any": "newer_of_any",
    "fingerprint": "newer_of_fingerprint",
    "target": "newer_of_target",
    "error_class": "newer_of_error_class",
    "queue": "newer_of_queue",
    "reason": "newer_of_reason",
    "kind": "newer_of_kind",
}
"""Statements by the filter whose index they follow, in either direction of time."""
LAST_FINGERPRINT: Final = "~"
"""Sorts after every fingerprint, which are hexadecimal digits."""


class LetterFilters(NamedTuple):
    """What is searched for; None matches anything."""

    fingerprint: str | None = None
    target: str | None = None
    queue: str | None = None
    error_class: str | None = None
    reason: str | None = None
    tag: str | None = None
    after: int | None = None
    """Failed at that time or later, in microseconds."""
    before: int | None = None
    aliases: frozenset[str] = frozenset()
    """Other names of the same target."""
    kind: str | None = None
    """`job` or `execution`."""

    @property
    def lead(self) -> tuple[str, str | None]:
        """The filter whose index is followed, the most selective first."""
        asked = ((name, getattr(self, name, None)) for name in OLDER if name != "target" or not self.aliases)
        return next(((name, value) for name, value in asked if value is not None), ("any", None))

    @property
    def needs_checks(self) -> bool:
        """Whether there are more filters than the one of the index."""
        return (
            self.tag is not None
            or bool(self.aliases)
            or sum(getattr(self, name, None) is not None for name in OLDER) > 1
        )

    def fits(self, facts: Facts) -> bool:
        """Return whether a dead letter matches, judged by its row."""
        return (
            (self.fingerprint is None or facts.fingerprint == self.fingerprint)
            and self._has_target(facts.target)
            and (self.queue is None or facts.queue == self.queue)
            and (self.error_class is None or facts.error_class == self.error_class)
            and (self.reason is None or facts.reason == self.reason)
            and (self.kind is None or facts.kind == self.kind)
            and (self.after is None or facts.created_at >= self.after)
            and (self.before is None or facts.created_at < self.before)
        )

    def fits_group(self, target: str, error_class: str) -> bool:
        """Return whether a group matches, judged by these columns."""
        return self._has_target(target) and (self.error_class is None or error_class == self.error_class)

    def _has_target(self, target: str) -> bool:
        return self.target is None or target == self.target or target in self.aliases

    @property
    def filters_whole_groups(self) -> bool:
        """Whether it only filters by what all dead letters of a group share."""
        rest = self._replace(fingerprint=None, target=None, error_class=None, aliases=frozenset())
        return rest == LetterFilters()


class Facts(NamedTuple):
    """The columns by which a dead letter is found."""

    job_id: str
    created_at: int
    fingerprint: str
    target: str
    error_class: str
    reason: str
    queue: str
    kind: str


class Spot(NamedTuple):
    """A position in the order of failures: the time, and the job."""

    at: int
    job_id: str


class TriagePage(NamedTuple):
    """One page, and where the next one begins; None when there is nothing more."""

    letters: list[Facts]
    next_spot: Spot | None


class LetterGroup(NamedTuple):
    """Dead letters of one fingerprint."""

    fingerprint: str
    target: str
    error_class: str
    sample: str
    size: int
    first_at: int
    last_at: int


def find(dialect: Dialect, filters: LetterFilters, spot: Spot | None, limit: int) -> Plan[TriagePage]:
    """Return matching dead letters, newest first."""
    found: list[Facts] = []
    here = spot or Spot(END_OF_TIME, LAST_ID)
    read = 0
    while len(found) < limit and read < MOST_READ:
        page = yield from _window(dialect, filters, here, limit - len(found), OLDER)
        read += max(page.read, 1)
        found += page.letters
        if page.next_spot is None:
            return TriagePage(found, None)
        here = page.next_spot
    return TriagePage(found, here)


def oldest(dialect: Dialect, filters: LetterFilters, spot: Spot | None, limit: int) -> Plan[TriagePage]:
    """Return matching dead letters that can be re-driven, oldest first."""
    return (yield from _window(dialect, filters, spot or Spot(-1, FIRST_ID), limit, NEWER)).found


class _Window(NamedTuple):
    letters: list[Facts]
    next_spot: Spot | None
    read: int

    @property
    def found(self) -> TriagePage:
        return TriagePage(self.letters, self.next_spot)


def _window(dialect: Dialect, filters: LetterFilters, spot: Spot, limit: int, way: Mapping[str, str]) -> Plan[_Window]:
    """Return up to `limit` of the next rows within a window."""
    older = way is OLDER
    if older and filters.before is not None and spot.at > filters.before:
        spot = spot._replace(at=filters.before, job_id=FIRST_ID)
    if not older and filters.after is not None and spot.at < filters.after:
        spot = spot._replace(at=filters.after, job_id=FIRST_ID)
    lead, value = filters.lead
    size = LARGEST_WINDOW if filters.needs_checks else _size(limit)
    rows = yield Step(way[lead], {"at": spot.at, "id": spot.job_id, "value": value}, literals={"window": size})
    facts = [Facts._make(row) for row in rows]
    fitting = [fact for fact in facts if filters.fits(fact)]
    if filters.tag is not None and fitting:
        chosen = {"ids": dialect.ids([fact.job_id for fact in fitting]), "tag": filters.tag}
        tagged = {job for (job,) in (yield Step("with_tag", chosen))}
        fitting = [fact for fact in fitting if fact.job_id in tagged]
    if len(fitting) >= limit:
        last = fitting[limit - 1]
        return _Window(fitting[:limit], Spot(last.created_at, last.job_id), len(rows))
    if len(rows) < size or _beyond(filters, facts[-1], older=older):
        return _Window(fitting, None, len(rows))
    return _Window(fitting, Spot(facts[-1].created_at, facts[-1].job_id), len(rows))


def _size(limit: int) -> int:
    """Return one of a few sizes: each is a separate statement."""
    return next(size for size in (SMALLEST_WINDOW, 1024, LARGEST_WINDOW) if size >= min(limit, LARGEST_WINDOW))


def _beyond(filters: LetterFilters, last: Facts, *, older: bool) -> bool:
    if older:
        return filters.after is not None and last.created_at < filters.after
    return filters.before is not None and last.created_at >= filters.before


def now(dialect: Dialect) -> Plan[int]:
    """Return the store's time: later failures are not part of the selection."""
    del dialect
    moment: int = (yield Step("store_now", alone=True))[0]
    return moment


def load(dialect: Dialect, ids: Sequence[str]) -> Plan[list[Sequence[Any]]]:
    """Return whole dead letters, in the order of these ids; those of PAUSED jobs are left out."""
    if not ids:
        return []
    rows = yield Step("get_letters", {"ids": dialect.ids(ids)})
    found = {row[0]: row for row in rows if not row[-1]}
    return [found[job] for job in ids if job in found]


def page(
    dialect: Dialect, filters: LetterFilters, spot: Spot | None, limit: int
) -> Plan[tuple[list[Sequence[Any]], Spot | None]]:
    """Do `find`, with whole dead letters."""
    found = yield from find(dialect, filters, spot, limit)
    rows = yield from load(dialect, [facts.job_id for facts in found.letters])
    return rows, found.next_spot


# ---------------------------------------------------------------------- groups


def groups(dialect: Dialect, filters: LetterFilters, limit: int) -> Plan[list[LetterGroup]]:
    """Return fingerprints with their number of dead letters, largest first."""
    if filters.filters_whole_groups:
        counts = yield from _largest(dialect, filters, limit)
        return (yield from _described(dialect, dict(counts)))
    found = yield from find(dialect, filters, None, MOST_READ)
    counted: dict[str, list[int]] = {}
    for facts in found.letters:
        counted.setdefault(facts.fingerprint, []).append(facts.created_at)
    most = sorted(counted, key=lambda fingerprint: (-len(counted[fingerprint]), fingerprint))[:limit]
    described = yield from _described(dialect, {fingerprint: len(counted[fingerprint]) for fingerprint in most})
    return [
        group._replace(first_at=min(counted[group.fingerprint]), last_at=max(counted[group.fingerprint]))
        for group in described
    ]


def _largest(dialect: Dialect, filters: LetterFilters, limit: int) -> Plan[list[tuple[str, int]]]:
    """Return them from the rows per fingerprint, in the order of their counts."""
    if filters.fingerprint is not None:
        rows = yield Step("group_facts", {"names": dialect.names([filters.fingerprint])})
        return [(row[0], row[4]) for row in rows if filters.fits_group(row[1], row[2]) and row[4] > 0]
    found: list[tuple[str, int]] = []
    count, fingerprint, read = 2**31 - 1, LAST_FINGERPRINT, 0
    size = _size(limit)
    while read < MOST_READ:
        rows = yield Step("largest_groups", {"count": count, "fingerprint": fingerprint}, literals={"window": size})
        found += [(row[0], row[3]) for row in rows if filters.fits_group(row[1], row[2])]
        if len(found) >= limit or len(rows) < size:
            break
        read += size
        fingerprint, count = rows[-1][0], rows[-1][3]
    return found[:limit]


def _described(dialect: Dialect, counts: dict[str, int]) -> Plan[list[LetterGroup]]:
    """Return groups in the order of `counts`. A row that is deleted meanwhile is left out."""
    if not counts:
        return []
    rows = {row[0]: row for row in (yield Step("group_facts", {"names": dialect.names(list(counts))}))}
    found = []
    for fingerprint, count in counts.items():
        if fingerprint in rows:
            _, target, error_class, sample, _, first_at, last_at = rows[fingerprint]
            found.append(LetterGroup(fingerprint, target, error_class, sample, count, first_at or 0, last_at or 0))
    return found
