"""The plan that notifies nodes of jobs that have become claimable."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from windlass.stores.channels import WORK
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan

MOST_BYTES: Final = 7_000
"""Largest payload of a notification: PostgreSQL accepts less than 8,000 bytes."""


def notify_of_work(dialect: Dialect, levels: Iterable[tuple[str, int]]) -> Plan[None]:
    """Notify every node of jobs at these levels of queues, without a sender, so that this node reacts too."""
    parts = sorted({f"{queue}:{priority}" for queue, priority in levels})
    if parts:
        text = ",".join(parts)
        yield from dialect.notify(WORK, f" {text}" if len(text) < MOST_BYTES else " *")
