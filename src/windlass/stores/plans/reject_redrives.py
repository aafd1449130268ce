"""The plan of a re-drive of rejects: each item enters its own step of a new execution, in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from windlass.runtime.failpoints import reached
from windlass.stores.dialect import Dialect, json_text
from windlass.stores.plan import Plan, Step
from windlass.stores.plans import dead_letters, execution_submissions, rejects
from windlass.stores.plans.dead_letters import AuditEntry
from windlass.stores.plans.execution_submissions import NewSubmission, SubmittedExecution
from windlass.stores.plans.rejects import RejectFilters, RejectSpot, StoredReject


class SelectedRejects(NamedTuple):
    """Rejects that could be re-driven, and where the next ones begin; None when there is nothing more."""

    rejects: list[StoredReject]
    next_spot: RejectSpot | None


def select(dialect: Dialect, filters: RejectFilters, spot: RejectSpot | None, limit: int) -> Plan[SelectedRejects]:
    """Return the next rejects that were not re-driven, oldest first."""
    found = yield from rejects.oldest(filters._replace(open_only=True), spot, limit)
    return SelectedRejects((yield from rejects.load(dialect, [one.id for one in found.rejects])), found.next_spot)


def redrive(
    dialect: Dialect,
    new: Sequence[NewSubmission],
    entry: AuditEntry,
    new_queues: Sequence[str],
    notification: str | None = None,
) -> Plan[list[SubmittedExecution]]:
    """Start executions of rejects, whose ids are their sources, and note them. With a conflict nothing is changed."""
    answers = yield from execution_submissions.submit(dialect, new, new_queues, notification)
    if any(answer.conflict for answer in answers):
        return answers
    marks = [(one.execution.source, answer.id) for one, answer in zip(new, answers, strict=True)]
    yield Step("mark_redriven", {"rows": json_text(marks)})
    yield from dead_letters.audit(dialect, entry)
    reached("redrive.before_commit")
    return answers
