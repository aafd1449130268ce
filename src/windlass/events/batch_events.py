"""The events of batches, as functions of what was counted."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any
from uuid import UUID

from windlass.domain.batch import BATCH_TARGET, BatchReport
from windlass.events.types import BatchCompleted, BatchProgressed, Event


def batch_events(reports: Iterable[BatchReport], at: datetime) -> list[Event]:
    """Return the events of batches whose progress is to be published, in order."""
    events: list[Event] = []
    for report in reports:
        batch_id = UUID(report.batch_id)
        base: dict[str, Any] = {
            "job_id": batch_id,
            "target": BATCH_TARGET,
            "queue": report.queue,
            "correlation_id": report.correlation_id,
            "at": at,
            "batch_id": batch_id,
            "progress": report.progress,
        }
        events.append(BatchProgressed(**base, on_progress=report.on_progress))
        if report.ended is not None:
            events.append(BatchCompleted(**base))
    return events
