"""Rejects: the envelopes of items that were given up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from windlass.domain.execution import ExecutionState, NewReject
from windlass.domain.identity import new_job_id
from windlass.domain.transition import Failure
from windlass.pipelines.definition import Definition, PipelineStep
from windlass.pipelines.values import canonical, fingerprint

SAMPLE: Final = 5
"""Number of items of a rejected stream that its envelope shows."""
LONGEST: Final = 500
MAX_PAYLOAD: Final = 65_536


class RejectEnvelope(msgspec.Struct, frozen=True, rename="camel"):
    """The fields of a reject under the names that other systems know."""

    tenant_id: str
    execution_id: str
    correlation_id: str | None
    idempotency_key: str | None
    step_name: str
    step_target: str
    reject_scope: str
    retries_observed: int
    retry_limit: int
    final_attempt: bool
    error_class: str
    error_message: str
    item_fingerprint: str
    item_count: int


class Rejects(NamedTuple):
    """Makes rejects of one execution."""

    definition: Definition
    execution: ExecutionState
    correlation_id: str | None
    describe: Callable[[BaseException], Failure]
    include_payload: bool

    def of_item(
        self, step: PipelineStep, attempt: int, key: str, value: Any, error: BaseException, text: str | None, type_: int
    ) -> NewReject:
        """Return the reject of one item, which `key` identifies."""
        return self._made(step, attempt, key, fingerprint(value), error, "ITEM", 1, text, type_)

    def of_stream(
        self, step: PipelineStep, attempt: int, given: Sequence[tuple[Any, BaseException | str]], seen: Counter[str]
    ) -> list[NewReject]:
        """Return the rejects of items that a stream step gave up itself. `seen` counts them over the whole step."""
        found = []
        for value, error in given:
            mark = fingerprint(value)
            seen[mark] += 1
            raised = error if isinstance(error, BaseException) else RejectedItem(error)
            text = canonical(value)
            found.append(self._made(step, attempt, f"{mark}#{seen[mark]}", mark, raised, "ITEM", 1, text, None))
        return found

    def of_whole_stream(
        self, step: PipelineStep, attempt: int, sample: Iterable[Any], count: int, error: BaseException
    ) -> NewReject:
        """Return the reject of a whole stream, with a sample of it."""
        shown = [value for value, _ in zip(sample, range(SAMPLE), strict=False)]
        mark = fingerprint(shown)
        return self._made(step, attempt, f"stream {mark}", mark, error, "STREAM", count, canonical(shown), None)

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
        kept = text if self.include_payload and text is not None and len(text) <= MAX_PAYLOAD else None
        return NewReject(
            execution.id,
            step.index,
            key,
            new_job_id(),
            execution.tenant,
            self.definition.name,
            step.name,
            mark,
            failure.error_class[:LONGEST],
            msgspec.json.encode(envelope).decode(),
            kept,
            type_,
        )


class RejectedItem(Exception):  # noqa: N818 - the reason of a reject that was given as a text
    """A body rejected an item, and gave a text as the reason."""
