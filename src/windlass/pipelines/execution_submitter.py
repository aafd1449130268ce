"""From an input to a stored execution: checked, encoded, and stored in our transaction or the caller's."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple
from uuid import UUID

from windlass.domain.execution import LogRow, NewExecution
from windlass.domain.identity import new_job_id, new_job_ids
from windlass.domain.job import NewJob
from windlass.domain.key_policy import KeyPolicy
from windlass.domain.keys import check_key
from windlass.domain.options import UNSET, JobOptions
from windlass.errors import InvalidOptionError, KeyConflictError, SerializationError
from windlass.pipelines.claimed_execution import NO_TIMEOUT, lane_of, tenant_resource
from windlass.pipelines.definition import INPUT, Definition
from windlass.pipelines.execution_handle import ExecutionHandle, ExecutionVerbs
from windlass.pipelines.item_values import Values, canonical, fingerprint
from windlass.runtime.verbs import Verb
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan
from windlass.stores.plans import execution_submissions, limits, reject_redrives
from windlass.stores.plans.dead_letters import AuditEntry
from windlass.stores.plans.execution_submissions import NewSubmission, SubmittedExecution
from windlass.submission.current_connection import connection_for
from windlass.submission.group_commit import levels_of
from windlass.submission.resources import checked_resources
from windlass.submission.submitter import SubmissionParts

DEFAULT_TENANT: Final = "default"

SubmitPlan = Callable[[Dialect, Sequence[NewSubmission], Sequence[str], str | None], Plan[list[SubmittedExecution]]]
"""Stores executions, given new queues and a notification."""


class ExecutionParts(NamedTuple):
    """What stores executions in one store, which `windlass.testing` exchanges."""

    submission: SubmissionParts
    verbs: ExecutionVerbs


class SubmitOptions(NamedTuple):
    """The options of one submission."""

    key: str | None = None
    tenant: str | None = None
    correlation_id: str | None = None
    source: str | None = None


class ExecutionSubmitter:
    """Stores executions of one application; all of them or none."""

    def __init__(self, parts: Callable[[], ExecutionParts], owner: object) -> None:
        self._parts = parts
        self._owner = owner

    def submit(
        self,
        definition: Definition,
        values: Values,
        given: Sequence[tuple[Any, SubmitOptions]],
        connection: Any = UNSET,
    ) -> Verb[list[ExecutionHandle]]:
        """Store executions, and return handles in their order; workers are woken."""
        ids = new_job_ids(len(given))
        new = [new_submission(definition, values, job_id, *one) for job_id, one in zip(ids, given, strict=True)]
        if not new:
            return []
        parts = self._parts()
        yield from parts.submission.authorization.check("submit", None)
        yield from _limit_tenants(parts.submission, definition)
        yield from _check_resources(parts.submission, definition)
        options = JobOptions() if connection is UNSET else JobOptions.make(connection=connection)
        chosen = connection_for(options, self._owner)
        if chosen is None:
            answers = yield from self._store(parts.submission, new)
        else:
            answers = yield from self._store_on(parts.submission, chosen, new)
        _refuse_conflicts(new, answers)
        return [
            ExecutionHandle(answer.id, one.execution.tenant, parts.verbs, duplicate=answer.duplicate)
            for one, answer in zip(new, answers, strict=True)
        ]

    def redrive(self, new: Sequence[NewSubmission], entry: AuditEntry) -> Verb[list[SubmittedExecution]]:
        """Start executions of rejects, and note them there; with a conflict of keys nothing is changed."""
        return (yield from self._store(self._parts().submission, new, partial(_redrive, entry=entry)))

    def _store(
        self, parts: SubmissionParts, new: Sequence[NewSubmission], plan: SubmitPlan = execution_submissions.submit
    ) -> Verb[list[SubmittedExecution]]:
        jobs = [one.job for one in new]
        levels = levels_of(jobs)
        keyed = any(one.execution.key is not None for one in new)

        def store(queues: list[str], notification: str | None) -> Verb[list[SubmittedExecution]]:
            return parts.access.run(plan, new, queues, notification)

        answers = yield from parts.commits.announced(levels, store, with_commit=not keyed)
        parts.local_node.new_work(levels)
        if parts.inline is not None:
            yield parts.inline.run, parts.inline.arun, ()
        return answers

    def _store_on(
        self, parts: SubmissionParts, connection: Any, new: Sequence[NewSubmission]
    ) -> Verb[list[SubmittedExecution]]:
        answers = yield from parts.caller_transactions.store(
            connection, [one.job for one in new], partial(_submit_or_raise, new=new)
        )
        if parts.inline is not None:
            parts.inline.uncommitted = True
        return answers


def _limit_tenants(parts: SubmissionParts, definition: Definition) -> Verb[None]:
    """Store how many executions of a tenant may run at a time, once per process."""
    most, resource = definition.options.tenant_concurrency, tenant_resource(definition.name)
    if most is None or resource in parts.known_resources:
        return
    yield from parts.access.run(limits.configure_resource, resource, limits.Limit(most, None, None))
    parts.known_resources.add(resource)


def _redrive(
    dialect: Dialect,
    new: Sequence[NewSubmission],
    queues: Sequence[str],
    notification: str | None,
    *,
    entry: AuditEntry,
) -> Plan[list[SubmittedExecution]]:
    return (yield from reject_redrives.redrive(dialect, new, entry, queues, notification))


def _check_resources(parts: SubmissionParts, definition: Definition) -> Verb[None]:
    """Raise if a step needs a resource that is not configured: its execution would fail there."""
    wanted = {step.options.resource for step in definition.steps if step.options.resource is not None}
    if asked := wanted - parts.known_resources:
        known = yield from parts.access.read(limits.known_resources, sorted(asked))
        parts.known_resources.update(checked_resources(asked, known))


def _submit_or_raise(
    dialect: Dialect, queues: Sequence[str], notification: str, *, new: Sequence[NewSubmission]
) -> Plan[list[SubmittedExecution]]:
    """Store executions on a caller's connection; a conflict is raised inside the plan, so that nothing remains."""
    answers = yield from execution_submissions.submit(dialect, new, queues, notification)
    _refuse_conflicts(new, answers)
    return answers


def _refuse_conflicts(new: Sequence[NewSubmission], answers: Sequence[SubmittedExecution]) -> None:
    for one, answer in zip(new, answers, strict=True):
        if answer.conflict:
            raise KeyConflictError(one.execution.key or "", UUID(answer.id), of_execution=True)


def new_submission(
    definition: Definition, values: Values, job_id: str, value: Any, options: SubmitOptions, args: str | None = None
) -> NewSubmission:
    """Return an execution with this input, checked; `args` is its stored form, if that is known."""
    tenant = checked_tenant(definition, options.tenant)
    key = _key(definition, tenant, value, options.key)
    try:
        definition.type_of(INPUT, value)
    except TypeError as error:
        raise SerializationError(str(error)) from None
    args = values.encode(0, value) if args is None else args
    correlation = None if options.correlation_id is None else check_key(options.correlation_id, "correlation_id")
    execution = NewExecution(
        job_id,
        tenant,
        definition.name,
        definition.version,
        definition.hash,
        key,
        fingerprint(value),
        int(definition.dlq),
        options.source,
        awaits=int(definition.awaits),
    )
    return NewSubmission(execution, _main_job(definition, execution, args, correlation, 0))


def _main_job(definition: Definition, execution: NewExecution, args: str, correlation: str | None, step: int) -> NewJob:
    """Return the job that runs an execution from a step on."""
    return NewJob(
        id=execution.id,
        queue=definition.options.queue,
        target=definition.target,
        priority=int(definition.options.priority),
        args=args,
        options=NO_TIMEOUT,
        correlation_id=correlation or execution.id,
        lane=lane_of(definition, step, execution.tenant) or None,
    )


class RejectedItem(NamedTuple):
    """An item that is re-driven: it enters its step of a new execution as a single value."""

    reject_id: str
    tenant: str
    step: int
    type: int
    value: str
    fingerprint: str
    key: str
    correlation_id: str | None


def rejected_submission(definition: Definition, values: Values, item: RejectedItem) -> NewSubmission:
    """Return the execution that re-drives an item."""
    job_id = new_job_id()
    execution = NewExecution(
        *(job_id, item.tenant, definition.name, definition.version, definition.hash, item.key, item.fingerprint),
        *(int(definition.dlq), item.reject_id, item.step, 1, int(definition.awaits)),
    )
    job = _main_job(definition, execution, values.nothing, item.correlation_id, item.step)
    return NewSubmission(execution, job, LogRow("submitted", item.step, 1, type=item.type, value=item.value))


def checked_tenant(definition: Definition, tenant: str | None) -> str:
    """Return the tenant of a submission, or raise if it may not submit."""
    options = definition.options
    where = f"pipeline {definition.name}@{definition.version}"
    if tenant is None:
        if options.require_tenant:
            raise InvalidOptionError(f"{where} needs a tenant (require_tenant=True), got none; pass tenant='...'")
        tenant = DEFAULT_TENANT
    check_key(tenant, "tenant")
    if options.tenants is not None and tenant not in options.tenants:
        allowed = ", ".join(sorted(options.tenants)) or "none"
        raise InvalidOptionError(f"{where} accepts the tenants {allowed}, got {tenant!r}; pass one of them")
    return tenant


def _key(definition: Definition, tenant: str, value: Any, given: str | None) -> str | None:
    match definition.key_policy:
        case KeyPolicy.SERVER_KEY:
            return hashlib.sha256(f"{tenant}\0{canonical(value)}".encode("utf-8", "backslashreplace")).hexdigest()
        case KeyPolicy.KEY_REQUIRED if given is None:
            raise InvalidOptionError(
                f"pipeline {definition.name}@{definition.version} needs a key with every submission "
                "(key_policy=KEY_REQUIRED), got none; pass key='...'"
            )
        case _:
            return None if given is None else check_key(given, "key")
