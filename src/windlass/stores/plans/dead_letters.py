"""Plans for dead letters: written when a job fails for good, counted by fingerprint, hidden, removed, purged.

Each fingerprint has one row. The transaction that locks it decides whether a failure raises an alert or is counted by
the current one, so that two nodes that fail at the same moment neither raise two nor lose a count. It is written last,
to hold the lock briefly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from windlass.domain.dead_letter import EXECUTION, JOB, TENANT
from windlass.domain.identity import FIRST_ID, new_job_ids
from windlass.domain.states import JobStatus
from windlass.domain.tags import tags_of
from windlass.runtime.failpoints import reached
from windlass.stores.dialect import Dialect, json_text
from windlass.stores.plan import Plan, Step
from windlass.stores.plans import flow_retention, reads

FIRST: Final = (-1, FIRST_ID)
"""Where a purge begins."""


class Letter(NamedTuple):
    """A dead letter to be stored."""

    job_id: str
    fingerprint: str
    target: str
    queue: str
    error_class: str
    reason: str
    envelope: str
    """The fields without a column."""
    sample: str
    """Its error, for its group and its alert."""
    kind: str = JOB
    tenant: str = TENANT
    execution_key: str | None = None
    """Key of an execution; the key of a job is read from the job."""


class Envelope(msgspec.Struct, frozen=True, rename="camel"):
    """The fields of a dead letter without a column."""

    transition_key: str = ""
    transport: str = ""
    platform: str = ""
    host: str | None = None
    error_message: str = ""
    retryable: bool = True
    retries_observed: int = 0
    traceback: str | None = None
    definition_hash: str | None = None


class AuditEntry(NamedTuple):
    """A principal, an action, and the number of jobs."""

    id: str
    principal: str
    action: str
    affected: int
    detail: Mapping[str, Any]


class _Deaths(NamedTuple):
    """Dead letters of one fingerprint, as the fragment `deaths` reads them."""

    fingerprint: str
    target: str
    error_class: str
    sample: str
    number: int
    first_job_id: str
    last_job_id: str
    alert_id: str


def store_letters(dialect: Dialect, letters: Sequence[Letter], window_us: int) -> Plan[frozenset[str]]:
    """Store the dead letters of jobs that fail in this transaction; return the jobs that raised an alert.

    `window_us`: how long an alert counts before another is raised.
    """
    deaths = _by_fingerprint(letters)
    yield Step("count_deaths", {"rows": json_text(deaths), "window_us": window_us})
    names = dialect.names([death.fingerprint for death in deaths])
    present = dict((yield Step("present_alerts", {"names": names})))
    raised = frozenset(death.first_job_id for death in deaths if present[death.fingerprint] == death.alert_id)
    counted = [death._replace(alert_id=present[death.fingerprint]) for death in deaths]
    yield Step("save_alerts", {"rows": json_text(counted)})
    rows = [
        (*letter[:7], letter.kind, letter.tenant, letter.execution_key, int(letter.job_id in raised))
        for letter in letters
    ]
    yield Step("insert_letters", {"rows": json_text(rows)})
    return raised


def remove(dialect: Dialect, ids: Sequence[str]) -> Plan[None]:
    """Delete the dead letters of jobs that were revived, canceled or deleted."""
    chosen = {"ids": dialect.ids(ids)}
    rows = yield Step("letters_counted", chosen)
    if rows:
        yield Step("forget_letters", chosen)
        yield from _uncount(rows)


def hide(dialect: Dialect, ids: Sequence[str]) -> Plan[None]:
    """Hide dead letters as long as their jobs are PAUSED."""
    chosen = {"ids": dialect.ids(ids)}
    rows = yield Step("letters_counted", chosen)
    yield Step("hide_letters", {**chosen, "hidden": 1})
    yield from _uncount(rows)


def show(dialect: Dialect, ids: Sequence[str]) -> Plan[None]:
    """Show hidden dead letters again. Their group is created again if it was deleted meanwhile."""
    chosen = {"ids": dialect.ids(ids)}
    rows = yield Step("get_letters", chosen)
    yield Step("hide_letters", {**chosen, "hidden": 0})
    letters = [
        Letter(job, fingerprint, target, "", error_class, reason, envelope, unpacked(envelope).error_message)
        for job, fingerprint, _, target, error_class, reason, _, _, envelope, *_ in rows
    ]
    if letters:
        yield Step("count_letters", {"rows": json_text(_by_fingerprint(letters))})


class Purged(NamedTuple):
    """Number of jobs that one batch has deleted, and where the next one begins; None when all have been checked."""

    jobs: int
    next_after: tuple[int, str] | None


def purge(
    dialect: Dialect,
    older_than_us: int,
    limit: int,
    after: tuple[int, str] = FIRST,
    entry: AuditEntry | None = None,
    kind: str | None = None,
) -> Plan[Purged]:
    """Delete up to `limit` jobs and executions that failed for good so long ago, live or archived, with all their data.

    Jobs of a flow stay while another job of it is live. Idempotency keys of jobs stay forever, and rejects until their
    own retention. Empty groups are deleted too and, if both kinds are purged, alerts of that age: they have no kind.
    `after`: the time and the job of the last failure that was checked. An `entry` is written with the count added.
    """
    age, bound = {"older_than_us": older_than_us}, {"window": limit}
    old = yield from _old(age, after, bound, kind)
    flows = {job: flow for job, _, _, flow in old if flow is not None}
    found = (yield from _still_dead(dialect, [row[0] for row in old])) if old else _Dead([], {})
    ended = yield from flow_retention.lock_ended(dialect, {flows[job] for job in found.live if job in flows})
    gone = [*(job for job in found.live if job not in flows or flows[job] in ended), *found.archived]
    if gone:
        yield from _forget(dialect, gone, found.archived)
        yield from _forget_executions(dialect, {job for job, _, of, _ in old if of == EXECUTION}.intersection(gone))
    if ended:
        yield from flow_retention.forget(dialect, gone, ended)
    if kind is None:
        yield Step("forget_alerts", age, literals=bound)
    yield Step("forget_groups", age, literals=bound)
    if entry is not None:
        yield from audit(dialect, entry._replace(affected=entry.affected + len(gone)))
    reached("purge.before_commit", lambda: bool(gone))
    return Purged(len(gone), (old[-1][1], old[-1][0]) if len(old) == limit else None)


def audit(dialect: Dialect, entry: AuditEntry) -> Plan[None]:
    """Write an audit entry. The entry of an action of several transactions is written with each of them."""
    del dialect
    yield Step("save_audit", {**entry._asdict(), "detail": json_text(entry.detail)})


def packed(envelope: Envelope) -> str:
    """Return an envelope as it is stored."""
    return json_text(envelope)


def unpacked(text: str) -> Envelope:
    """Return a stored envelope; empty if it is damaged: one row must not hide a whole page."""
    try:
        return msgspec.json.decode(text, type=Envelope)
    except (msgspec.MsgspecError, ValueError, TypeError, RecursionError):
        return Envelope()


_FORGET: Final = (
    *("forget_ended", "forget_jobs", "forget_attempts", "forget_progress", "forget_lines", "forget_waits"),
)
"""Everything else that is stored of a job."""
_FORGET_EXECUTION: Final = ("purge_parts", "purge_items", "purge_transitions", "purge_executions")
_ALL_OF_THEM: Final = 1_000_000_000


class _Dead(NamedTuple):
    """Jobs that are FAILED, and stay so until the commit."""

    live: list[str]
    archived: dict[str, str | None]
    """Archived jobs, with their tags."""


def _still_dead(dialect: Dialect, ids: Sequence[str]) -> Plan[_Dead]:
    """Lock the jobs and check them again: one may just have been revived, paused or archived."""
    locked = {row[0]: row[1] for row in (yield Step("lock_ended", {"ids": dialect.ids(ids)}))}
    missing = [job for job in ids if job not in locked]
    archived: dict[str, str | None] = {}
    if missing:
        rows = yield Step("lock_archived", {"ids": dialect.ids(missing)})
        archived = {row[0]: reads.unpacked(row).job["tags"] for row in rows}
        missing = [job for job in missing if job not in archived]
    if missing:
        again = {row[0] for row in (yield Step("lock_ended", {"ids": dialect.ids(missing)}))}
        stray = [job for job in missing if job not in again]
        if stray:  # a node of an earlier version revived them, and knew of no dead letters
            yield from remove(dialect, stray)
    paused = [job for job, status in locked.items() if status == JobStatus.PAUSED]
    if paused:  # the same
        yield from hide(dialect, paused)
    return _Dead([job for job in locked if job not in paused], archived)


def _forget(dialect: Dialect, ids: Sequence[str], archived: Mapping[str, str | None]) -> Plan[None]:
    yield from remove(dialect, ids)
    chosen = {"ids": dialect.ids(ids)}
    tags = {**dict((yield Step("tags_of_jobs", chosen))), **archived}
    pairs = sorted({(tag, job) for job, text in tags.items() for tag in tags_of(text)})
    if pairs:
        yield from dialect.insert_keys("forget_tags", pairs)
    if archived:
        yield Step("forget_archived", {"ids": dialect.ids(list(archived))})
    for step in _FORGET:
        yield Step(step, chosen)


def _old(
    age: Mapping[str, int], after: tuple[int, str], bound: Mapping[str, int], kind: str | None
) -> Plan[Sequence[Sequence[Any]]]:
    name, params = "old_letters", {**age, "at": after[0], "id": after[1]}
    if kind is not None:
        name, params = "old_letters_of_kind", {**params, "kind": kind}
    rows: Sequence[Sequence[Any]] = yield Step(name, params, literals=bound)
    return rows


def _forget_executions(dialect: Dialect, ids: Collection[str]) -> Plan[None]:
    if ids:
        for step in _FORGET_EXECUTION:
            yield Step(step, {"ids": dialect.ids(sorted(ids))}, literals={"window": _ALL_OF_THEM})


def _uncount(rows: Sequence[tuple[str, str, int]]) -> Plan[None]:
    """Remove dead letters from their groups; hidden ones are not in them."""
    counts = Counter(fingerprint for _, fingerprint, hidden in rows if not hidden)
    deaths = [
        _Deaths(fingerprint, "", "", "", -count, FIRST_ID, FIRST_ID, FIRST_ID)
        for fingerprint, count in sorted(counts.items())
    ]
    if deaths:
        yield Step("count_letters", {"rows": json_text(deaths)})


def _by_fingerprint(letters: Sequence[Letter]) -> list[_Deaths]:
    """Return them in the order of fingerprints, in which their rows are locked."""
    groups: dict[str, list[Letter]] = {}
    for letter in letters:
        groups.setdefault(letter.fingerprint, []).append(letter)
    return [
        _Deaths(
            fingerprint,
            first.target,
            first.error_class,
            first.sample,
            len(group),
            first.job_id,
            group[-1].job_id,
            alert,
        )
        for alert, (fingerprint, group) in zip(new_job_ids(len(groups)), sorted(groups.items()), strict=True)
        for first in group[:1]
    ]
