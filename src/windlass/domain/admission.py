"""Admission of submitted jobs by their idempotency keys, then by their business keys (J1.4, J1.5).

Pure: the store passes in the current holders.

A unit holds the jobs of one call: it is stored as a whole or, if a conflict raises, not at all. Units of concurrent
callers that share a commit are decided together, in order, so that a later one sees the keys of an earlier one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from windlass.domain.job import Conflict, NewJob, SubmittedJob

NOT_STARTED = frozenset({"PENDING", "PAUSED", "WAITING"})

SCHEDULE = "schedule"
"""The kind of a holder that is not a job."""


class Holder(NamedTuple):
    """The job or schedule that holds a business key."""

    id: str
    status: str
    kind: str = "job"


class Admission(NamedTuple):
    """The rows to write, and the answer to each unit."""

    rows: list[NewJob]
    replaced: dict[str, str]
    """Old holder → the job that supersedes it; the old one may itself be among `rows`."""
    answers: list[list[SubmittedJob] | Conflict]


def admit(units: Sequence[Sequence[NewJob]], known_keys: Mapping[str, str], holders: Mapping[str, Holder]) -> Admission:
    """Decide unit by unit; nothing of a refused unit is stored."""
    admission = Admission([], {}, [])
    keys, live = dict(known_keys), dict(holders)
    for unit in units:
        attempt = _Unit(keys, live)
        conflict = attempt.admit_all(unit)
        if conflict is not None:
            admission.answers.append(conflict)
            continue
        keys, live = attempt.keys, attempt.live
        admission.rows.extend(attempt.rows)
        admission.replaced.update(attempt.replaced)
        admission.answers.append(attempt.submitted)
    return admission


class _Unit:
    """One unit in progress, on copies of the keys, so that a conflict changes nothing."""

    def __init__(self, keys: Mapping[str, str], live: Mapping[str, Holder]) -> None:
        self.keys = dict(keys)
        self.live = dict(live)
        self.rows: list[NewJob] = []
        self.replaced: dict[str, str] = {}
        self.submitted: list[SubmittedJob] = []
        self.earlier: str | None = None
        """The earlier job of which the flow at hand is a duplicate."""

    def admit_all(self, unit: Sequence[NewJob]) -> Conflict | None:
        answering = {job.position.flow_id: job for job in unit if job.position is not None and job.position.answers}
        for job in unit:
            position = job.position
            if position is None:
                conflict = self._admit(job)
            else:
                if position.flow_id == job.id:  # its first row
                    self.earlier = self._earlier(answering[position.flow_id])
                conflict = self._admit_in_flow(job, answers=position.answers)
            if conflict is not None:
                return conflict
        return None

    def _earlier(self, job: NewJob) -> str | None:
        """Return the earlier job of which the one that answers for a flow is a duplicate."""
        if job.idempotency_key is not None and (first := self.keys.get(job.idempotency_key)) is not None:
            return first
        if job.business_key is None or job.on_conflict != "return_existing":
            return None
        holder = self.live.get(job.business_key)
        return None if holder is None or holder.kind == SCHEDULE else holder.id

    def _admit_in_flow(self, job: NewJob, *, answers: bool) -> Conflict | None:
        """Admit a job of a flow; only the one that answers for the flow can be a duplicate, and then all are."""
        if self.earlier is not None:
            if answers:
                self.submitted.append(SubmittedJob(self.earlier, duplicate=True))
            return None
        if job.idempotency_key is not None and (first := self.keys.get(job.idempotency_key)) is not None:
            return Conflict(job.idempotency_key, first, of_follower=True)
        conflict = self._admit(job)
        if conflict is None and not answers:
            self.submitted.pop()
        return conflict

    def _admit(self, job: NewJob) -> Conflict | None:
        if job.idempotency_key is not None and (first := self.keys.get(job.idempotency_key)) is not None:
            self.submitted.append(SubmittedJob(first, duplicate=True))
            return None
        if job.business_key is not None and (holder := self.live.get(job.business_key)) is not None:
            if holder.kind == SCHEDULE:  # there is no job to return, and none to replace
                return Conflict(job.business_key, holder.id, holder_kind=SCHEDULE)
            if job.on_conflict == "return_existing":
                self.submitted.append(SubmittedJob(holder.id, duplicate=True))
                return None
            if job.on_conflict == "raise" or holder.status not in NOT_STARTED:
                return Conflict(job.business_key, holder.id)
            self.replaced[holder.id] = job.id
            self._keep(job, supersedes=holder.id)
            return None
        self._keep(job)
        return None

    def _keep(self, job: NewJob, supersedes: str | None = None) -> None:
        if job.idempotency_key is not None:
            self.keys[job.idempotency_key] = job.id
        if job.business_key is not None:
            self.live[job.business_key] = Holder(job.id, "PENDING")
        self.rows.append(job)
        self.submitted.append(SubmittedJob(job.id, supersedes=supersedes))
