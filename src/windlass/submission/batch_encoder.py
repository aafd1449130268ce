"""From batches to rows: the job of the batch with what follows it, and its children."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from windlass.domain.batch import BATCH_TARGET, FIRST_CONDITION, OF_BATCH, BatchRules
from windlass.domain.branches import Guard
from windlass.domain.dependencies import FlowPosition
from windlass.domain.identity import new_job_id, new_job_ids
from windlass.domain.job import NewJob
from windlass.domain.options import UNSET, JobOptions
from windlass.errors import InvalidOptionError
from windlass.submission.batch import Batch
from windlass.submission.bound_calls import bind
from windlass.submission.by_name import ANY_CALL
from windlass.submission.call import Call, CallStep, Enqueuer, Flow
from windlass.submission.current_connection import connection_for
from windlass.submission.encoder import CallEncoder
from windlass.submission.error_text import short
from windlass.submission.flow_encoder import check_keys
from windlass.submission.registry import Registry
from windlass.submission.rows import RowTemplate
from windlass.submission.stored_options import StoredFlow, with_flow

MAX_FOLLOWERS: Final = 1_000
"""Largest number of jobs that follow a batch: its retry revives them in one transaction."""


class BatchEncoder:
    """Makes rows of batches."""

    def __init__(self, registry: Registry, submitter: Enqueuer, encoder: CallEncoder) -> None:
        self._registry = registry
        self._submitter = submitter
        self._encoder = encoder

    def call_of(self, batch: Batch) -> Call[Any]:
        """Return the job of a batch as a call, which nothing runs."""
        return Call(BATCH_TARGET, (batch.name,), {}, batch.options, ANY_CALL, self._submitter)

    def flows_of(self, batch: Batch) -> list[Flow[Any]]:
        """Return what follows a batch: flows whose first job is the batch."""
        call = self.call_of(batch)
        return [Flow((CallStep(call),)).then(step.step) for step in batch.steps]

    def rows(self, batch: Batch) -> list[NewJob]:
        """Check and encode a batch and what follows it; its own row is the first."""
        call, batch_id = self.call_of(batch), new_job_id()
        conditions = tuple(step.condition for step in batch.steps if step.condition is not None)
        hook, predicates = batch.progress_function, self._encoder.flows.predicates
        on_progress = None if hook is None else predicates.admit(hook, "function for on_progress")
        guards = any(step.predicate is not None for step in batch.steps)
        stored = StoredFlow(batch=BatchRules(conditions, on_progress, guards))
        row = self._encoder.row(batch_id, call)
        position = FlowPosition(batch_id, answers=True, batch=True)
        options = with_flow(row.options, stored)
        rows = [row._replace(due_at=None, delay_us=None, options=options, position=position)]
        way = FIRST_CONDITION
        for step, flow in zip(batch.steps, self.flows_of(batch), strict=True):
            follows = way if step.follows is None else step.follows.value
            way += step.follows is None
            guard = None if step.predicate is None else Guard(OF_BATCH, predicates.admit(step.predicate))
            rows += _behind(batch_id, follows, self._encoder.flows.rows(flow), guard)
        if len(rows) > MAX_FOLLOWERS:
            raise InvalidOptionError(f"a batch has at most {MAX_FOLLOWERS:,} jobs behind it, got {len(rows) - 1:,}")
        check_keys(rows)
        return rows

    def children(self, batch: Batch, batch_id: str) -> ChildRows:
        """Return what makes rows of items."""
        job = batch.job
        if job is None:
            raise InvalidOptionError("a batch needs items: app.batch(…).each(job, items)")
        options = getattr(job, "options", None)
        _check_options(options if isinstance(options, JobOptions) else JobOptions(), job, self._registry)
        correlation = batch.options.correlation_id
        shared = None if correlation is UNSET else correlation
        made = ChildRows(self._registry, self._submitter, self._encoder, job, batch_id, shared)
        made.call(None)  # whether it may run, and takes one argument
        return made


class ChildRows:
    """Makes the rows of a batch's children: everything but id and arguments is encoded once."""

    def __init__(
        self,
        registry: Registry,
        submitter: Enqueuer,
        encoder: CallEncoder,
        job: Any,
        batch_id: str,
        correlation_id: str | None,
    ) -> None:
        self._registry = registry
        self._submitter = submitter
        self._encoder = encoder
        self._job = job
        self._batch_id = batch_id
        self._correlation_id = correlation_id
        """Correlation id of the batch, for children without their own."""
        self._first: Call[Any] | None = None
        self._template: RowTemplate | None = None

    def call(self, item: Any) -> Call[Any]:
        """Return the call of one child."""
        if hasattr(self._job, "bind"):
            call: Call[Any] = self._job.bind(item)
            if len(call.args) != 1 or call.args[0] is not item or call.kwargs:
                raise InvalidOptionError(
                    f"each() takes a job whose only argument is the item, but bind(item) of {short(self._job)} gives "
                    "it other arguments; give each() the items as the job takes them"
                )
            return call
        return bind(self._job, (item,), {}, registry=self._registry, submitter=self._submitter, options=JobOptions())

    def rows(self, items: Sequence[Any]) -> list[NewJob]:
        """Check and encode children."""
        if self._first is None or self._template is None:
            self._first = self.call(items[0])
            self._template = self._shared(self._first)
        first, template = self._first, self._template
        check, encode = first.spec.bind_check, self._encoder.arguments
        rows = []
        for job_id, item in zip(new_job_ids(len(items)), items, strict=True):
            check((item,), {})
            rows.append(template.row(job_id, first.target, encode(first.spec, (item,), {})))
        return rows

    def _shared(self, call: Call[Any]) -> RowTemplate:
        row = self._encoder.row("", call)
        options = with_flow(row.options, StoredFlow(group=self._batch_id))
        correlation = row.correlation_id or self._correlation_id
        return RowTemplate(row._replace(options=options, batch_id=self._batch_id, correlation_id=correlation))


def _behind(batch_id: str, follows: int, rows: Sequence[NewJob], guard: Guard | None) -> list[NewJob]:
    """Return the rows of a flow whose first job stands for the batch as rows behind it."""
    first, behind = rows[0].id, []
    for row in rows[1:]:
        assert row.position is not None
        position, parent, options = row.position._replace(flow_id=batch_id), row.parent_id, row.options
        if position.parent_id == first:
            position, parent = position._replace(parent_id=batch_id, follows=follows), batch_id
            options = options if guard is None else _guarded(options, guard)
        behind.append(row._replace(parent_id=parent, position=position, options=options))
    return behind


def _guarded(options: str | None, guard: Guard) -> str:
    """Return stored options with a guard."""
    stored: dict[str, Any] = msgspec.json.decode(options) if options else {}
    stored["flow"] = {**stored.get("flow", {}), "guard": guard}
    return msgspec.json.encode(stored).decode()


def _check_options(options: JobOptions, job: Any, registry: Registry) -> None:
    for name in ("idempotency_key", "business_key"):
        if getattr(options, name) not in (UNSET, None):
            raise InvalidOptionError(
                f"{short(job)} has the option {name}, which all children of the batch would share; leave it out, and "
                "give the batch an idempotency_key: items are stored once then"
            )
    if connection_for(options, registry) is not None:
        raise InvalidOptionError(
            "a batch is stored in transactions of its own, chunk by chunk, and cannot join yours: leave out "
            "connection= and use_connection(), or enqueue a job in your transaction that loads the batch"
        )
