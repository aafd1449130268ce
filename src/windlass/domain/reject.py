"""Rejects as values: items that were given up while their execution went on, their groups, and their re-drive."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

from windlass.domain.clock import from_micros
from windlass.domain.dead_letter import camel_case

ITEM: Final = "ITEM"
STREAM: Final = "STREAM"
"""The scopes of rejects: one item, or a whole stream."""
GROUPINGS: Final = ("fingerprint", "error_class", "step")
"""What rejects are grouped by."""


class SinkFailure(StrEnum):
    """What follows when the sink of a pipeline fails to take a reject: `app.pipeline(…, sink=…, sink_failure=…)`.

    ```python
    def open_ticket(reject: Reject) -> None:
        tickets.create(reject.error_message, details=reject.envelope())

    orders = app.pipeline("orders", sink=open_ticket, sink_failure=SinkFailure.FAIL_PIPELINE)
    ```
    """

    CONTINUE = "CONTINUE"
    """The sink is called after the commit, and the execution goes on. A durable sink is called until it has taken it.

    One that is not durable is called once, and its error is logged.
    """
    FAIL_PIPELINE = "FAIL_PIPELINE"
    """The sink is called before the commit. Its error is that of the step, which is retried, and then fails."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reject:
    """An item that was given up while its execution went on, from `app.rejects`, or as a sink gets it.

    Errors are sanitised. `envelope()` gives the same under the names that other systems know.
    """

    id: UUID
    pipeline: str
    item: str
    """Position of the item in its expansion, e.g. `3.17`; empty before the first one.

    Of an item that `ctx.reject` gave up: its fingerprint, and how often that was rejected before.
    """
    tenant_id: str
    execution_id: str
    correlation_id: str | None
    idempotency_key: str | None
    """The key of its execution."""
    step_name: str
    step_target: str
    """The definition of the pipeline, and the step: `pipeline/orders@1#8c1f6a2b90d4/price`."""
    reject_scope: str
    """`ITEM`, or `STREAM`: all items that a step was given."""
    retries_observed: int
    retry_limit: int
    final_attempt: bool
    error_class: str
    error_message: str
    rejected_at_epoch_ms: int
    """When it was rejected, by the store's clock."""
    item_fingerprint: str
    """SHA-256 of the item's canonical JSON; of a stream: of its first items."""
    item_count: int
    """1 for an item; for a stream the number of its items."""
    payload: Any = None
    """The item, or the first five items of a stream; None unless `include_payload` is on."""
    redriven_as: UUID | None = None
    """The execution that it was re-driven as."""

    @property
    def rejected_at(self) -> datetime:
        """When it was rejected, aware, in UTC, to the millisecond."""
        return from_micros(self.rejected_at_epoch_ms * 1000)

    def envelope(self) -> dict[str, Any]:
        """Return the fields of the envelope in camel case: `tenantId`, `executionId`, `itemFingerprint` …"""
        own = ("id", "pipeline", "item", "redriven_as")
        return {camel_case(one.name): getattr(self, one.name) for one in fields(self) if one.name not in own}


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectGroup:
    """Rejects with the same fingerprint, error class or step, from `app.rejects.groups()`."""

    key: str
    """What they have in common."""
    count: int
    share: float
    """Share of all counted rejects: 0.9 means that one cause makes up nine of ten."""
    first_at: datetime
    last_at: datetime
    sample: str
    """The error of the latest of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectRedrive:
    """Result of `app.rejects.redrive()`. After a dry run nothing was re-driven."""

    selected: int
    """Number of matching rejects that had not been re-driven."""
    redriven: int
    """Number of executions that were started."""
    ids: tuple[UUID, ...]
    """The executions that were started; after a dry run, the rejects that were selected."""
    duplicates: int = 0
    """Number of rejects whose item was re-driven before, by another reject; they are marked with that execution."""
    skipped: Mapping[UUID, str] = field(default_factory=dict)
    """Rejects that cannot be re-driven, with the reason as text."""
