"""The events as values."""

import dataclasses
from datetime import UTC, datetime, timedelta
from typing import assert_type
from uuid import UUID

import pytest

from windlass.events import types
from windlass.events.types import Event, JobDeadLettered, JobEvent, NodeLost

COMMON = {"job_id", "target", "queue", "correlation_id", "at"}
OWN = {
    "JobStarted": {"attempt", "node"},
    "JobCompleted": {"attempt", "wait_ms", "run_ms"},
    "JobFailed": {"error", "error_class", "attempt", "will_retry"},
    "JobRetrying": {"error", "error_class", "attempt", "next_at", "delay"},
    "JobDeadLettered": {"error", "error_class", "attempt", "reason", "fingerprint"},
    "AlertRaised": {"error_hash", "error_class", "sample"},
    "JobCanceled": {"reason"},
    "JobSignaled": {"key", "outcome", "by"},
    "JobTimedOut": {"timeout"},
    "NodeLost": {"node", "recovered"},
    "WorkflowBranchTriggered": {"parent_id", "child_id", "description"},
    "BatchProgressed": {"batch_id", "progress", "on_progress"},
    "BatchCompleted": {"batch_id", "progress"},
    "CircuitOpened": {"service"},
    "CircuitClosed": {"service"},
    "ScheduleSkipped": {"key", "tick", "why", "count"},
}


@pytest.mark.parametrize(("name", "own"), OWN.items())
def test_every_event_has_the_fields_of_the_specification(name: str, own: set[str]):
    """J5.8: the events, with the fields the public surface names."""
    kind = getattr(types, name)
    assert issubclass(kind, Event)
    assert {field.name for field in dataclasses.fields(kind)} == COMMON | own


def test_all_events_are_exported():
    assert {*OWN, "Event", "JobEvent"} == set(types.__all__)
    assert types.__all__ == sorted(types.__all__)


def test_an_event_is_a_value_that_cannot_be_changed():
    at = datetime(2030, 1, 1, tzinfo=UTC)
    event = types.JobTimedOut(
        job_id=UUID(int=1), target="shop:charge", queue="default", at=at, timeout=timedelta(seconds=3)
    )
    assert event == dataclasses.replace(event)
    assert hash(event) == hash(dataclasses.replace(event))
    assert event.correlation_id is None
    with pytest.raises(dataclasses.FrozenInstanceError):
        event.queue = "other"  # type: ignore[misc]
    assert not hasattr(event, "__dict__")


def test_events_of_jobs_always_have_an_id_and_those_of_nodes_never():
    def listener(event: JobDeadLettered) -> None:
        assert_type(event.job_id, UUID)
        assert_type(event.target, str)

    assert callable(listener)
    lost = NodeLost(at=datetime(2030, 1, 1, tzinfo=UTC), node="a", recovered=2)
    assert not isinstance(lost, JobEvent)
    assert (lost.job_id, lost.target, lost.queue) == (None, None, None)
