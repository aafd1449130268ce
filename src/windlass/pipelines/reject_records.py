"""Rejects: the records of items that were given up, and the values that sinks and users get."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec

from windlass.domain.execution import ExecutionState
from windlass.domain.execution_items import NewReject, OutboxReject
from windlass.domain.identity import new_job_id
from windlass.domain.item_paths import readable
from windlass.domain.reject import ITEM, STREAM, Reject
from windlass.domain.transition import Failure
from windlass.errors import SerializationError
from windlass.pipelines.definition import Definition, PipelineStep
from windlass.pipelines.item_values import Values, fingerprint
from windlass.retry_signals import RejectItem

SAMPLE: Final = 5
"""Number of items of a rejected stream that its envelope shows."""
LONGEST: Final = 500
MOST_SAMPLED: Final = 65_536
"""Size from which a sample shows no more items."""
OCCURRENCE: Final = "#"
"""Stands between the fingerprint and the occurrence of an item that a stream step rejected."""
WHOLE: Final = "stream "
"""Begins the key of a rejected stream."""

StoredValue = tuple[int, str]
"""A value as it is stored: the number of its type, and its text."""


class RejectEnvelope(msgspec.Struct, frozen=True, rename="camel"):
    """The fields of a reject under the names that other systems know."""

    tenant_id: str = ""
    execution_id: str = ""
    correlation_id: str | None = None
    idempotency_key: str | None = None
    step_name: str = ""
    step_target: str = ""
    reject_scope: str = ITEM
    retries_observed: int = 0
    retry_limit: int = 0
    final_attempt: bool = True
    error_class: str = ""
    error_message: str = ""
    item_fingerprint: str = ""
    item_count: int = 1


class RejectPayload(msgspec.Struct, frozen=True):
    """A reject in the outbox. Its item stays in its stored form: only its definition knows the type."""

    id: str
    version: str
    hash: str
    item: str
    at: int
    envelope: RejectEnvelope
    type: int | None
    payload: str | None


class Rejects(NamedTuple):
    """Makes rejects of one execution."""

    definition: Definition
    execution: ExecutionState
    correlation_id: str | None
    describe: Callable[[BaseException], Failure]
    values: Values
    include_payload: bool
    kept: bool
    """Whether the store keeps them."""
    now: Callable[[], int]
    """The store's time in microseconds."""
    destination: str | None = None
    """Where the outbox passes them on to; None: they go elsewhere."""

    def of_item(
        self, step: PipelineStep, attempt: int, path: str, value: Any, error: BaseException, stored: StoredValue | None
    ) -> NewReject:
        """Return the reject of one item; of a step that gives or takes many, its scope is that stream."""
        scope = STREAM if step.kind.gives_stream or step.kind.takes_stream else ITEM
        number, text = (None, None) if stored is None else stored
        return self._made(step, attempt, path, fingerprint(value), error, scope, 1, text, number)

    def of_stream(
        self, step: PipelineStep, attempt: int, given: Sequence[tuple[Any, BaseException | str]], seen: Counter[str]
    ) -> list[NewReject]:
        """Return the rejects of items that a stream step gave up itself. `seen` counts them over the whole step."""
        found = []
        for value, error in given:
            mark = fingerprint(value)
            seen[mark] += 1
            raised = error if isinstance(error, BaseException) else RejectItem(error)
            number, text = self._stored(value) or (None, None)
            key = f"{mark}{OCCURRENCE}{seen[mark]}"
            found.append(self._made(step, attempt, key, mark, raised, ITEM, 1, text, number))
        return found

    def of_whole_stream(
        self, step: PipelineStep, attempt: int, sample: Sequence[StoredValue], count: int, error: BaseException
    ) -> NewReject:
        """Return the reject of a whole stream, with a sample of it."""
        mark = fingerprint([self.values.decode(*one) for one in sample])
        shown, size = [], 0
        for one in sample:
            size += len(one[1])
            if size <= MOST_SAMPLED:
                shown.append(one)
        text = msgspec.json.encode(shown).decode()
        return self._made(step, attempt, f"{WHOLE}{mark}", mark, error, STREAM, count, text, None)

    def value(self, new: NewReject) -> Reject:
        """Return a reject as its sink gets it."""
        payload = None if new.payload is None else payload_of(self.values, new.type, new.payload)
        envelope = msgspec.json.decode(new.envelope, type=RejectEnvelope)
        return reject_value(envelope, new.id, new.pipeline, new.item, self.now(), payload, None)

    def _stored(self, value: Any) -> StoredValue | None:
        """Return an item as it can be stored; None if the pipeline has no type for it."""
        number = self.definition.number_of(value) if self.include_payload else None
        try:
            return None if number is None else (number, self.values.encode(number, value))
        except SerializationError:
            return None

    def _made(
        self,
        step: PipelineStep,
        attempt: int,
        key: str,
        mark: str,
        error: BaseException,
        scope: str,
        count: int,
        text: str | None,
        type_: int | None,
    ) -> NewReject:
        execution, failure = self.execution, self.describe(error)
        envelope = RejectEnvelope(
            tenant_id=execution.tenant,
            execution_id=execution.id,
            correlation_id=self.correlation_id,
            idempotency_key=execution.key,
            step_name=step.name,
            step_target=f"{self.definition.target}/{step.name}",
            reject_scope=scope,
            retries_observed=attempt - 1,
            retry_limit=step.options.retry_limit,
            final_attempt=True,
            error_class=failure.error_class,
            error_message=failure.error,
            item_fingerprint=mark,
            item_count=count,
        )
        new = NewReject(
            *(execution.id, step.index, key, new_job_id(), execution.tenant, self.definition.name, step.name, mark),
            *(failure.error_class[:LONGEST], msgspec.json.encode(envelope).decode()),
            *((text, type_) if self.include_payload else (None, None)),
            *(count, self.kept),
        )
        return new if self.destination is None else new._replace(outgoing=self._outgoing(new, envelope))

    def _outgoing(self, new: NewReject, envelope: RejectEnvelope) -> OutboxReject:
        of = (self.definition.version, self.definition.hash, new.item, self.now())
        payload = RejectPayload(new.id, *of, envelope, new.type, new.payload)
        text = msgspec.json.encode(payload).decode()
        return OutboxReject(str(self.destination), self.correlation_id, text)


def payload_of(values: Values, number: int | None, text: str) -> Any:
    """Return the item of a reject; of a stream without a number of its own: the list of its first items."""
    if number is not None:
        return values.decode(number, text)
    return [values.decode(*one) for one in msgspec.json.decode(text, type=list[StoredValue])]


def unpacked(text: str) -> RejectEnvelope:
    """Return a stored envelope; empty if it is damaged: one row must not hide a whole page."""
    try:
        return msgspec.json.decode(text, type=RejectEnvelope)
    except (msgspec.MsgspecError, ValueError):
        return RejectEnvelope()


def reject_value(
    envelope: RejectEnvelope, id_: str, pipeline: str, key: str, at: int, payload: Any, redriven_as: str | None
) -> Reject:
    """Return a reject for users."""
    return Reject(
        id=UUID(id_),
        pipeline=pipeline,
        item=_item(key),
        rejected_at_epoch_ms=at // 1000,
        payload=payload,
        redriven_as=None if redriven_as is None else UUID(redriven_as),
        **msgspec.structs.asdict(envelope),
    )


def _item(key: str) -> str:
    """Return what identifies an item, for users."""
    return "" if key.startswith(WHOLE) else key if OCCURRENCE in key else readable(key)
