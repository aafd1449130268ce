"""From flows to rows: every job of a flow, with its position, checked and encoded before anything is stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from windlass.domain.branches import OF_OUTCOME, Branch, Guard
from windlass.domain.dependencies import FlowPosition, Follows
from windlass.domain.identity import new_job_ids
from windlass.domain.job import NewJob
from windlass.domain.signal import NO_DEADLINE
from windlass.errors import InvalidOptionError
from windlass.submission.call import Call, Flow, calls_of
from windlass.submission.flow_layout import LaidGuard, LaidJob, Layout, Parent, Predicate, layout_of
from windlass.submission.predicates import Predicates
from windlass.submission.stored_options import StoredFlow, with_flow
from windlass.submission.templates import Template, has_marks, template_of


class _Ids(NamedTuple):
    """The ids of the jobs and groups of one flow."""

    jobs: Sequence[str]
    groups: Sequence[str]


class FlowEncoder(NamedTuple):
    """Makes rows of flows."""

    row_of: Callable[[str, Call[Any], str | None], NewJob]
    """Makes the row of one call, by its id; its arguments may be given."""
    max_bytes: int
    predicates: Predicates

    def rows(self, flow: Flow[Any]) -> list[NewJob]:
        """Check and encode a flow."""
        _check_owner(flow)
        layout = layout_of(flow)
        ids = _Ids(new_job_ids(len(layout.jobs)), new_job_ids(layout.groups))
        rows = [self._row(ids, number, job) for number, job in enumerate(layout.jobs)]
        check_keys(rows)
        return _with_correlation(rows, layout)

    def _row(self, ids: _Ids, number: int, job: LaidJob) -> NewJob:
        template = self._template(job)
        args = None if template is None else template.text(job.call.spec, self.max_bytes)
        row = self.row_of(ids.jobs[number], job.call, args)
        parent = job.parent
        position = FlowPosition(
            flow_id=ids.jobs[0],
            parent_id=None if parent is None else _parent_id(ids, parent),
            follows=None if parent is None else parent.follows.value,
            group_id=None if job.group is None or job.group.number is None else ids.groups[job.group.number],
            answers=job.answers,
        )
        stored = self._stored(ids, job, position, template)
        if stored is not None:
            row = row._replace(options=with_flow(row.options, stored))
        _check_conflict(row, job)
        if parent is None:
            return row._replace(position=position)
        if row.wait is None:
            position = position._replace(delay_us=row.delay_us or None, due_at=row.due_at)
        else:  # due at its deadline, which is counted from its release
            no_deadline = NO_DEADLINE if row.wait.timeout_us is None else None
            position = position._replace(delay_us=row.wait.timeout_us, due_at=no_deadline)
        before = None if parent.job is None else ids.jobs[parent.job]
        return row._replace(due_at=None, delay_us=None, parent_id=before, position=position)

    def _template(self, job: LaidJob) -> Template | None:
        """Return the arguments of a call that takes results; None: it takes none."""
        call, parent = job.call, job.parent
        if not has_marks(call.args, call.kwargs):
            return None
        if parent is None:
            raise InvalidOptionError(
                f"RESULT is an argument of {call.target}, the first step of its flow, before which there is no result; "
                "pass a value"
            )
        outcomes = _sees_outcomes(job, parent)
        return template_of(call.spec, call.args, call.kwargs, outcomes=outcomes)

    def _stored(self, ids: _Ids, job: LaidJob, position: FlowPosition, template: Template | None) -> StoredFlow | None:
        """Return what the engine needs to know; None for a job on which nothing depends and that takes no results."""
        if not job.leads and position.group_id is None and template is None and job.guard is None:
            return None
        leads = tuple(sorted(kind.value for kind in job.leads))
        branches = tuple(
            Branch(ids.jobs[one.child], one.kind, self._target(one.predicate), one.choice, one.description)
            for one in job.branches
        )
        stored = StoredFlow(leads, position.group_id, branches=branches, guard=self._guard(job.guard))
        if template is None or job.parent is None:
            return stored
        of_group = job.parent.job is None
        marked = {"marks": template.marks, "paths": template.paths, "of_group": of_group, "shape": job.parent.shape}
        return msgspec.structs.replace(stored, **marked)

    def _guard(self, guard: LaidGuard | None) -> Guard | None:
        if guard is None:
            return None
        unless = tuple(self.predicates.admit(one) for one in guard.unless)
        return Guard(guard.about, self._target(guard.predicate), unless, guard.description)

    def _target(self, predicate: Predicate | None) -> str | None:
        return None if predicate is None else self.predicates.admit(predicate)


def _sees_outcomes(job: LaidJob, parent: Parent) -> bool:
    """Return whether `RESULT` is a `JobResult`, or a list of them, because the parent may not have succeeded."""
    if job.guard is not None:
        return job.guard.about == OF_OUTCOME
    return parent.follows is Follows.FAILURE or (parent.job is None and parent.follows is not Follows.THEN)


def _parent_id(ids: _Ids, parent: Parent) -> str:
    if parent.job is not None:
        return ids.jobs[parent.job]
    assert parent.group is not None
    assert parent.group.number is not None
    return ids.groups[parent.group.number]


def _check_conflict(row: NewJob, job: LaidJob) -> None:
    if row.on_conflict == "return_existing" and not job.answers and row.business_key is not None:
        what, does = ("is a member of a group", "count") if job.parent is None else ("follows another job", "follow")
        raise InvalidOptionError(
            f"{row.target} {what} and has on_conflict='return_existing': the existing job would not {does}; leave it "
            "out, or use 'raise' or 'replace'"
        )


def check_keys(rows: Sequence[NewJob]) -> None:
    """Refuse a business key that two jobs of the flow need: all are taken at once, and one would replace the other."""
    targets: dict[str, str] = {}
    for row in rows:
        if row.business_key is None:
            continue
        if row.business_key in targets:
            raise InvalidOptionError(
                f"{targets[row.business_key]} and {row.target} of one flow have the business key "
                f"{row.business_key!r}, which one job can hold at a time; give it to one of them"
            )
        targets[row.business_key] = row.target


def _check_owner(flow: Flow[Any]) -> None:
    """Refuse jobs of several applications: a flow is stored by one, and its jobs run where all are known."""
    calls = iter(calls_of(flow))
    first = next(calls)
    for call in calls:
        if not isinstance(call, Call):
            raise InvalidOptionError(f"expected calls as steps of a flow, got {call!r}; bind arguments: job.bind(…)")
        if call.submitter is not first.submitter:
            raise InvalidOptionError(
                f"{first.target} and {call.target} are jobs of different applications, and a flow belongs to one; "
                "declare both on one application, or enqueue the other from a job's body"
            )


def _with_correlation(rows: list[NewJob], layout: Layout) -> list[NewJob]:
    """Give followers the correlation id of the job whose handle is the flow's, unless they have their own."""
    shared = next(row.correlation_id for row, job in zip(rows, layout.jobs, strict=True) if job.answers)
    if shared is None:
        shared = rows[0].correlation_id
    if shared is None:
        return rows
    return [row if row.correlation_id is not None else row._replace(correlation_id=shared) for row in rows]
