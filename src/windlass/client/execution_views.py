"""Executions as users see them, made of stored rows."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import msgspec

from windlass.domain.clock import from_micros
from windlass.domain.execution import OPEN, Execution, ExecutionState, ExecutionStatus, ExecutionTransition
from windlass.domain.execution_progress import step_name
from windlass.domain.external_wait import ExternalWait
from windlass.domain.item_paths import readable
from windlass.domain.reject import Reject
from windlass.errors import SerializationError
from windlass.pipelines.declared_pipelines import DeclaredPipelines
from windlass.pipelines.item_values import Values
from windlass.pipelines.pipeline import AppPipeline
from windlass.pipelines.reject_records import payload_of, reject_value, unpacked
from windlass.spi import Serializer
from windlass.stores.plans.execution_reads import FoundExecution, StoredExecution, StoredTransition
from windlass.stores.plans.external_waits import OpenWait
from windlass.stores.plans.rejects import StoredReject
from windlass.submission.by_name import ANY_CALL


def status_of(found: FoundExecution) -> ExecutionStatus:
    """Return the status of an execution: of an open one by its main job and the jobs of its parts."""
    stored = found.stored
    if stored.status != OPEN:
        return ExecutionStatus(stored.status)
    if stored.paused or stored.job_status == "PAUSED":
        return ExecutionStatus.PAUSED
    jobs = [(stored.job_status, stored.due), *((part.status, part.due) for part in found.parts)]
    if any(status == "RUNNING" for status, _ in jobs):
        return ExecutionStatus.RUNNING
    dues = [due for _, due in jobs if due is not None]
    waits, until = bool(dues) and min(dues) > found.now, stored.outside_until
    if waits and isinstance(until, int) and min(dues) >= until:  # else it has none, or is damaged
        return ExecutionStatus.WAITING_EXTERNAL
    return ExecutionStatus.WAIT_RETRY if waits else ExecutionStatus.QUEUED


class ExecutionReader:
    """Makes values of stored executions; those of pipelines that are not declared here are plain JSON."""

    def __init__(self, declared: DeclaredPipelines, serializer: Serializer) -> None:
        self._declared = declared
        self._serializer = serializer

    def execution(self, found: FoundExecution) -> Execution:
        """Return an execution."""
        stored = found.stored
        leases = [part.lease_until for part in found.parts if part.lease_until is not None]
        lease = stored.lease_until if stored.lease_until is not None else max(leases, default=None)
        dues = [part.due for part in found.parts if part.due is not None]
        due = stored.due if stored.due is not None else min(dues, default=None)
        return Execution(
            id=UUID(stored.id),
            tenant=stored.tenant,
            key=stored.key,
            pipeline=stored.pipeline,
            pipeline_version=stored.pipeline_version,
            definition_hash=stored.definition_hash,
            status=status_of(found),
            row_version=stored.row_version,
            cursor=stored.cursor,
            step=self._step(stored),
            attempt=stored.attempt,
            lease_until=None if lease is None else from_micros(lease),
            due_at=None if due is None else from_micros(due),
            transition_key=stored.transition_key,
            input=self._input(stored),
            result=self._result(stored),
            error_code=stored.error_code,
            error_message=stored.error_message,
            correlation_id=stored.correlation_id,
            rejected=stored.rejected,
            created_at=from_micros(stored.created_at),
            updated_at=from_micros(stored.updated_at),
        )

    def _step(self, stored: StoredExecution) -> str | None:
        pipeline = self._declared.get(stored.pipeline, stored.pipeline_version)
        if pipeline is None or pipeline.definition.hash != stored.definition_hash:
            return None
        steps = pipeline.definition.steps
        return steps[stored.cursor].name if stored.cursor < len(steps) else None

    def values(self, stored: StoredExecution) -> Values | None:
        """Return the codec of an execution's values; None if its very definition is not known here."""
        pipeline = self._declared.get(stored.pipeline, stored.pipeline_version)
        if pipeline is None or pipeline.definition.hash != stored.definition_hash:
            return None
        return pipeline.values

    def value(self, stored: StoredExecution, number: int | None, text: str | None) -> Any:
        """Return a stored value."""
        if text is None:
            return None
        values = self.values(stored)
        try:
            if values is not None and number is not None:
                return values.decode(number, text)
            return self._plain(text)
        except (SerializationError, IndexError):
            return text

    def last_item(self, stored: StoredExecution, state: ExecutionState) -> Any:
        """Return the only item of an execution that ended in one where items are expected; None if it has none.

        So do re-driven items, and those that passed the expansion by: a single value is a stream of one.
        """
        if stored.status != ExecutionStatus.SUCCEEDED or stored.result is None:
            return None
        result = self._result(stored)
        return result[0] if isinstance(result, list) and len(result) == 1 else None

    def may_have_items(self, stored: StoredExecution) -> bool:
        """Return whether an execution ends in items; True where its pipeline is not known here."""
        pipeline = self._declared.get(stored.pipeline, stored.pipeline_version)
        return pipeline is None or pipeline.definition.ends_in_items

    def reject(self, stored: StoredReject) -> Reject:
        """Return a reject; its item is plain JSON if the definition of its pipeline is not known here."""
        envelope = unpacked(stored.envelope)
        payload = None if stored.payload is None else self._payload(stored, envelope.step_target)
        facts = (stored.id, stored.pipeline, stored.item, stored.at, payload, stored.redriven_as)
        return reject_value(envelope, *facts)

    def definition(self, step_target: str) -> AppPipeline | None:
        """Return the pipeline with the very definition that a reject's step is of; None if it is not known here."""
        return next((one for one in self._declared if step_target.startswith(f"{one.definition.target}/")), None)

    def _payload(self, stored: StoredReject, step_target: str) -> Any:
        pipeline, text = self.definition(step_target), stored.payload or ""
        try:
            if pipeline is not None:
                return payload_of(pipeline.values, stored.type, text)
            if stored.type is None:
                texts = [one for _, one in msgspec.json.decode(text, type=list[tuple[int, str]])]
                return [self._plain(one) for one in texts]
            return self._plain(text)
        except (SerializationError, IndexError, msgspec.MsgspecError):
            return text

    def external_wait(self, row: OpenWait, token: str) -> ExternalWait:
        """Return a wait; what it shows is plain JSON if the definition of its pipeline is not known here."""
        pipeline = self._declared.get(row.pipeline, row.pipeline_version)
        known = pipeline if pipeline is not None and pipeline.definition.hash == row.definition_hash else None
        names = () if known is None else tuple(step.name for step in known.definition.steps)
        request = None if row.request is None else self._request(row, known)
        return ExternalWait(
            interaction_id=row.key.interaction_id,
            token=token,
            execution_id=UUID(row.execution_id),
            tenant=row.tenant,
            pipeline=row.pipeline,
            step=step_name(names, row.step),
            item=readable(row.path) or None,
            correlation_id=row.correlation_id,
            request=request,
            created_at=from_micros(row.created_at),
            deadline=from_micros(row.deadline),
        )

    def _request(self, row: OpenWait, known: AppPipeline | None) -> Any:
        text = row.request or ""
        try:
            return self._plain(text) if known is None else known.values.decode_request(row.step, text)
        except (SerializationError, LookupError, TypeError):  # damaged: it is shown as it is stored
            return text

    def _plain(self, text: str) -> Any:
        args, _ = self._serializer.decode_arguments(ANY_CALL, text)
        return args[0] if args else None

    def transition(self, stored: StoredExecution, row: StoredTransition) -> ExecutionTransition:
        """Return a row of an execution's log."""
        return ExecutionTransition(
            version=row.version,
            at=from_micros(row.at),
            kind=row.kind,
            step=row.step,
            attempt=row.attempt,
            node=row.node,
            run_ms=None if row.run_us is None else row.run_us / 1000,
            error_class=row.error_class,
            error=row.error,
            value=self.value(stored, row.type, row.value),
        )

    def _input(self, stored: StoredExecution) -> Any:
        return self.value(stored, 0, stored.args)

    def _result(self, stored: StoredExecution) -> Any:
        if stored.result is None:
            return None
        pipeline = self._declared.get(stored.pipeline, stored.pipeline_version)
        returns = Any if pipeline is None else pipeline.definition.result_type
        try:
            return self._serializer.decode_result(stored.result, returns)
        except SerializationError:
            return None
