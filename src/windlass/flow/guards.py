"""Guards of followers that were released without a decision: found when such a follower is about to run.

Only jobs that store a guard are looked at: one statement finds the guarded ones, and one for each kind of
subject reads what their predicates are called with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from windlass.domain.branches import OF_OUTCOME, OF_VALUE, Guard, OpenGuard
from windlass.domain.job import Payload
from windlass.errors import SerializationError
from windlass.feature import Feature, GuardSource
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan
from windlass.stores.plans import flow_branches, flow_results
from windlass.submission.stored_options import from_text


def feature() -> Feature:
    """Return the guards about jobs as a feature."""
    return Feature("guards", guards=tuple(GuardSource(about, _read_ended) for about in (OF_OUTCOME, OF_VALUE)))


def _read_ended(dialect: Dialect, parents: Sequence[str]) -> Plan[Mapping[str, Any]]:
    return (yield from flow_results.ended_jobs(dialect, parents))


class Guards:
    """Finds the guards of a node's claims."""

    def __init__(self, features: Sequence[Feature]) -> None:
        self._sources = {source.about: source for feature in features for source in feature.guards}

    def concerns(self, payload: Payload) -> bool:
        """Return whether a job stores a guard; most options are not decoded for it."""
        return isinstance(payload.options, str) and '"guard":' in payload.options and guard_of(payload) is not None

    def read(self, dialect: Dialect, payloads: Mapping[str, Payload]) -> Plan[dict[str, OpenGuard]]:
        """Return the guards of those jobs that were released without a decision."""
        guards = {job: guard for job, payload in payloads.items() if (guard := guard_of(payload)) is not None}
        guarded = yield from flow_branches.guarded_among(dialect, sorted(guards))
        found: dict[str, OpenGuard] = {}
        for about in sorted({guards[one.job_id].about for one in guarded}):
            chosen = [one for one in guarded if guards[one.job_id].about == about]
            source = self._sources.get(about)
            parents = sorted({one.parent_id for one in chosen})
            subjects = {} if source is None else (yield from source.read(dialect, parents))
            for one in chosen:
                found[one.job_id] = OpenGuard(guards[one.job_id], one.parent_id, subjects.get(one.parent_id))
        return found


def guard_of(payload: Payload) -> Guard | None:
    """Return the guard that a job stores."""
    try:
        flow = from_text(payload.options).flow
    except SerializationError:  # damaged: it fails when it is read again
        return None
    return None if flow is None else flow.guard
