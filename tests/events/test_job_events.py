"""The events of ended jobs, as a table."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from windlass.domain.circuit import Circuit, CircuitChange
from windlass.domain.clock import from_micros
from windlass.domain.ended import NO_EFFECTS, Effects, Ended
from windlass.domain.states import Move
from windlass.domain.transition import Failure, Times
from windlass.events.job_events import circuit_events, job_events
from windlass.events.types import (
    AlertRaised,
    CircuitClosed,
    CircuitOpened,
    Event,
    JobCanceled,
    JobCompleted,
    JobDeadLettered,
    JobFailed,
    JobRetrying,
    JobTimedOut,
)

ID = "01920000-0000-7000-8000-000000000001"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
TIMES = Times(1_000_000, 3_000_000, 500_000)
FAILURE, LATE = Failure("no", "ValueError"), Failure("late", "JobTimeoutError")
JOB = Ended(ID, "shop:charge", "default", 2, Move.SUCCEED, correlation_id="c", number=3, times=TIMES)


@pytest.mark.parametrize(
    ("ended", "kinds"),
    [
        (JOB, [JobCompleted]),
        (JOB._replace(move=Move.CANCEL), [JobCanceled]),
        (JOB._replace(move=Move.FAIL, failure=FAILURE), [JobFailed, JobDeadLettered]),
        (JOB._replace(move=Move.GIVE_UP, failure=FAILURE), [JobFailed, JobDeadLettered]),
        (JOB._replace(move=Move.FAIL, failure=LATE), [JobTimedOut, JobFailed, JobDeadLettered]),
        (JOB._replace(move=Move.REQUEUE, failure=FAILURE), [JobFailed, JobRetrying]),
        (JOB._replace(move=Move.REQUEUE, failure=LATE), [JobTimedOut, JobFailed, JobRetrying]),
        (JOB._replace(move=Move.REQUEUE), []),  # a snooze
        (JOB._replace(move=Move.RELEASE, failure=FAILURE), []),  # its process was lost
        (JOB._replace(move=Move.RETRY), []),  # revived
    ],
)
def test_a_move_has_its_events_in_order(ended: Ended, kinds: list[type[Event]]):
    """J5.1: what was neither ended nor retried says nothing."""
    assert [type(event) for event in job_events(ended, NO_EFFECTS, NOW)] == kinds


def test_the_event_of_a_dead_letter_names_the_alert_it_raised():
    """J5.6: by the effects of the transaction that wrote it."""
    failed = JOB._replace(move=Move.FAIL, failure=FAILURE, reason="non_retryable")
    *_, dead, alert = job_events(failed, Effects(alerts=frozenset({ID})), NOW)
    assert isinstance(dead, JobDeadLettered)
    assert isinstance(alert, AlertRaised)
    assert (dead.fingerprint, dead.reason) == (alert.error_hash, "non_retryable")


def test_events_carry_the_times_of_the_attempt():
    (event,) = job_events(JOB, NO_EFFECTS, NOW)
    assert isinstance(event, JobCompleted)
    assert (event.at, event.wait_ms, event.run_ms, event.attempt) == (from_micros(3_000_000), 500, 2000, 3)
    assert (event.job_id, event.correlation_id) == (UUID(ID), "c")


def test_a_job_that_ended_without_an_attempt_ended_now():
    (event,) = job_events(JOB._replace(move=Move.CANCEL, times=None, reason="superseded"), NO_EFFECTS, NOW)
    assert isinstance(event, JobCanceled)
    assert (event.at, event.reason) == (NOW, "superseded")


@pytest.mark.parametrize(("due", "next_at"), [({ID: 9_000_000}, 9_000_000), ({}, 5_000_000)])
def test_a_retry_names_the_stored_time_if_it_is_known(due: dict[str, int], next_at: int):
    retried = JOB._replace(move=Move.REQUEUE, failure=FAILURE, delay_us=2_000_000)
    *_, event = job_events(retried, Effects(due=due), NOW)
    assert isinstance(event, JobRetrying)
    assert (event.next_at, event.delay) == (from_micros(next_at), timedelta(seconds=2))


def test_circuits_that_opened_and_closed():
    opened = Circuit().opened_by_hand(5)
    events = circuit_events([CircuitChange("a", Circuit(), opened, 7), CircuitChange("b", opened, Circuit(), 8)])
    assert events == [
        CircuitOpened(at=from_micros(7), service="a"),
        CircuitClosed(at=from_micros(8), service="b"),
    ]
