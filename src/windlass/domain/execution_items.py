"""Items of executions, parts and rejects as values: read, written, stored."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class ItemStatus(IntEnum):
    """The state of an item."""

    READY = 0
    RETRY = 1
    DONE = 2
    OUTSIDE = 3
    REJECTED = 4
    FAILED = 5
    EXPANDED = 6


class ItemRow(NamedTuple):
    """An item as a claim reads it."""

    path: str
    status: int
    cursor: int
    version: int
    attempt: int
    emitted: int
    last_hash: str | None
    due: int | None
    type: int
    value: str | None


class ItemWrite(NamedTuple):
    """A change of an item, guarded by the version that was read."""

    execution_id: str
    stage: int
    path: str
    version: int
    """Before it."""
    status: int
    cursor: int
    attempt: int
    emitted: int
    last_hash: str | None
    delay_us: int | None
    """Delay until it is due; None: due at once."""
    type: int
    value: str | None
    error_class: str | None = None
    error: str | None = None
    due: int | None = None
    """When it is due, by the store's clock; None: after `delay_us`."""


class NewItem(NamedTuple):
    """An item about to be stored."""

    execution_id: str
    stage: int
    path: str
    status: int
    cursor: int
    type: int
    value: str


class PartKey(NamedTuple):
    """Identifies a part: a range of items that one job works off."""

    execution_id: str
    stage: int
    segment: int
    lo: str


class NewPart(NamedTuple):
    """A part about to be stored; without a job it waits for another one to end."""

    execution_id: str
    stage: int
    segment: int
    lo: str
    hi: str


class OutboxReject(NamedTuple):
    """A reject as the outbox has it, for a sink outside of the store."""

    destination: str
    correlation_id: str | None
    payload: str


class NewReject(NamedTuple):
    """A reject about to be stored."""

    execution_id: str
    step: int
    item: str
    """The item's path; in a stream: fingerprint and occurrence."""
    id: str
    tenant: str
    pipeline: str
    step_name: str
    fingerprint: str
    error_class: str
    envelope: str
    payload: str | None
    type: int | None
    item_count: int = 1
    """Number of items that it stands for."""
    kept: bool = True
    """Whether the store keeps it; if not, it is only counted."""
    outgoing: OutboxReject | None = None
    """What goes into the outbox if the reject is new; None: its sink is not fed from there."""
