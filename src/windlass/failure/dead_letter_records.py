"""Dead letters between their rows, the values that users get, and the texts that foreign providers get."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Final
from uuid import UUID

from windlass.domain.dead_letter import EXECUTION, JOB, PIPELINE, DeadLetter
from windlass.domain.execution import ExecutionStatus
from windlass.domain.states import JobStatus
from windlass.stores.plans.dead_letters import unpacked

_HUMP: Final = re.compile(r"(?<=[a-z0-9])[A-Z]")


def letter_of(row: Sequence[Any]) -> DeadLetter:
    """Return a row of `get_letters` as a `DeadLetter`."""
    job_id, fingerprint, created_at, target, error_class, reason, execution_key, correlation_id, text = row[:9]
    kind, tenant, _ = row[9:]
    envelope, of_execution = unpacked(text), kind == EXECUTION
    return DeadLetter(
        job_id=UUID(job_id),
        fingerprint=fingerprint,
        tenant_id=tenant,
        execution_id=job_id,
        execution_key=execution_key,
        transition_key=envelope.transition_key,
        correlation_id=correlation_id,
        resource_type=PIPELINE if of_execution else JOB,
        resource_name=target,
        transport=envelope.transport,
        platform=envelope.platform,
        terminal_status=(ExecutionStatus.DLQ if of_execution else JobStatus.FAILED).value,
        created_at_epoch_ms=created_at // 1000,
        terminal_reason=reason,
        error_code=error_class,
        error_message=envelope.error_message,
        retryable=envelope.retryable,
        retries_observed=envelope.retries_observed,
        traceback=envelope.traceback,
        host=envelope.host,
        definition_hash=envelope.definition_hash,
    )


def text_of(letter: DeadLetter) -> str:
    """Return a dead letter as JSON: the fields of its envelope, and its fingerprint."""
    return json.dumps({**letter.envelope(), "fingerprint": letter.fingerprint}, ensure_ascii=False)


def letter_of_text(text: str) -> DeadLetter:
    """Return the dead letter of a text; the inverse of `text_of`. Fields that a newer version has are left out."""
    known = {one.name for one in fields(DeadLetter)}
    given = {_HUMP.sub(lambda hump: "_" + hump[0].lower(), name): value for name, value in json.loads(text).items()}
    return DeadLetter(job_id=UUID(given["execution_id"]), **{name: given[name] for name in known & given.keys()})
