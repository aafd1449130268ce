"""A re-drive of rejects: bounded batches of new executions, each in its own transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final
from uuid import UUID

from windlass import loggers
from windlass.client.execution_verbs import OneExecutionVerbs
from windlass.client.redrive_order import Order
from windlass.domain.clock import monotonic
from windlass.domain.identity import new_job_id
from windlass.domain.reject import RejectRedrive
from windlass.execution_errors import PayloadNotKeptError
from windlass.pipelines.execution_submitter import ExecutionSubmitter, RejectedItem, rejected_submission
from windlass.pipelines.reject_records import RejectEnvelope, unpacked
from windlass.runtime.failpoints import reached
from windlass.runtime.verbs import Verb, sleep
from windlass.stores.plans import reject_redrives, triage
from windlass.stores.plans.dead_letters import AuditEntry
from windlass.stores.plans.execution_submissions import NewSubmission
from windlass.stores.plans.rejects import RejectFilters, RejectSpot, StoredReject

logger = loggers.logger("windlass.rejects")

NOT_KEPT: Final = "its item was not kept; include_payload=True on the pipeline keeps those to come"
ROUND: Final = "~"
"""Stands before the number of times that an item has come back rejected from its own re-drive."""


class RejectTotals:
    """What a re-drive has done so far."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self.selected: list[str] = []
        self.redriven: list[str] = []
        self.duplicates = 0
        self.skipped: dict[UUID, str] = {}
        detail = {"note": order.note, "filters": dict(order.asked), "limit": order.limit, "rate": order.rate}
        self.entry = AuditEntry(new_job_id(), order.principal, "rejects.redrive", 0, detail)

    @property
    def left(self) -> int:
        """How many more may be selected."""
        return self._order.limit - len(self.selected)

    def skip(self, reject_id: str, why: str) -> None:
        """Note a reject that cannot be re-driven."""
        self.skipped[UUID(reject_id)] = why
        logger.warning("reject %s was not re-driven: %s", reject_id, why)

    def check(self) -> None:
        """Raise if nothing could be re-driven because no item was kept."""
        if self.selected and len(self.skipped) == len(self.selected) and set(self.skipped.values()) == {NOT_KEPT}:
            raise PayloadNotKeptError(len(self.selected))

    def result(self) -> RejectRedrive:
        """Return the result for users."""
        ids = self.selected if self._order.dry_run else self.redriven
        return RejectRedrive(
            selected=len(self.selected),
            redriven=len(self.redriven),
            ids=tuple(map(UUID, ids)),
            duplicates=self.duplicates,
            skipped=dict(self.skipped),
        )


def redrive(
    order: Order,
    filters: RejectFilters,
    verbs: OneExecutionVerbs,
    submitter: ExecutionSubmitter,
    on_progress: Callable[[RejectRedrive], object] | None,
) -> Verb[RejectRedrive]:
    """Select, start executions and wait, batch by batch. Items that are rejected again meanwhile are not selected."""
    access, sums = verbs.jobs.access, RejectTotals(order)
    spot: RejectSpot | None = None
    now = yield from access.read(triage.now)
    filters = filters._replace(before=min(now + 1, filters.before or now + 1))
    while sums.left > 0:
        began, size = monotonic(), min(order.batch, sums.left)
        batch = yield from access.read(reject_redrives.select, filters, spot, size)
        spot = batch.next_spot
        sums.selected += [reject.id for reject in batch.rejects]
        new = _submissions(verbs, batch.rejects, sums)
        started = 0
        if new and not order.dry_run:
            started = yield from _start(submitter, new, sums)
        if on_progress is not None and batch.rejects:
            on_progress(sums.result())
        if spot is None:
            break
        if order.rate is not None and started and sums.left:
            yield from sleep(max(0.0, began + started / order.rate - monotonic()))
    sums.check()
    return sums.result()


def _start(submitter: ExecutionSubmitter, new: Sequence[NewSubmission], sums: RejectTotals) -> Verb[int]:
    """Start executions; those whose key another input holds are skipped. Return how many were started."""
    while new:
        entry = sums.entry._replace(affected=sums.entry.affected + len(new))
        answers = yield from submitter.redrive(new, entry)
        pairs = list(zip(new, answers, strict=True))
        refused = [(one, answer) for one, answer in pairs if answer.conflict]
        if not refused:
            reached("redrive.after_commit")
            started = [answer.id for answer in answers if not answer.duplicate]
            sums.redriven += started
            sums.duplicates += len(answers) - len(started)
            sums.entry = entry
            return len(started)
        for one, answer in refused:
            why = f"execution {answer.id} holds the key {one.execution.key!r} with another input"
            sums.skip(one.execution.source or "", why)
        new = [one for one, answer in pairs if not answer.conflict]
    return 0


def _submissions(verbs: OneExecutionVerbs, rejects: Sequence[StoredReject], sums: RejectTotals) -> list[NewSubmission]:
    """Return the executions of rejects; those that cannot be re-driven are noted."""
    found = []
    for reject in rejects:
        envelope = unpacked(reject.envelope)
        made = _submission(verbs, reject, envelope)
        if isinstance(made, str):
            sums.skip(reject.id, made)
        else:
            found.append(made)
    return found


def _submission(verbs: OneExecutionVerbs, reject: StoredReject, envelope: RejectEnvelope) -> NewSubmission | str:
    """Return the execution of a reject, or why there can be none."""
    if envelope.item_count != 1:
        return f"it is a stream of {envelope.item_count:,} items, of which only a sample is kept; submit them again"
    if reject.payload is None or reject.type is None:
        return NOT_KEPT
    pipeline = verbs.reader.definition(envelope.step_target)
    if pipeline is None:
        return f"its definition ({envelope.step_target}) is not declared in this application; do this where it is"
    item = RejectedItem(
        *(reject.id, reject.tenant, reject.step, reject.type, reject.payload, reject.fingerprint),
        key=key_of(envelope),
        correlation_id=envelope.correlation_id,
    )
    return rejected_submission(pipeline.definition, pipeline.values, item)


def key_of(envelope: RejectEnvelope) -> str:
    """Return the key of the execution that re-drives an item: its step and fingerprint.

    One that was rejected by that very execution gets the key of another round; else it could never be re-driven again.
    """
    key = f"reject:{envelope.step_name}:{envelope.item_fingerprint}"
    before, _, number = (envelope.idempotency_key or "").partition(ROUND)
    return f"{key}{ROUND}{int(number or 1) + 1}" if before == key and (number or "1").isdecimal() else key
