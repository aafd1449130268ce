"""Ended jobs and the effects of follow-ups."""

from typing import Any

import pytest

from windlass.domain.circuit import Circuit, CircuitChange
from windlass.domain.ended import NO_EFFECTS, Effects, Ended, Unfinished
from windlass.domain.states import JobStatus, Move
from windlass.domain.transition import Failure, Times

JOB = Ended("id", "shop:charge", "default", 2, Move.SUCCEED)
OTHER = JOB._replace(job_id="other")


def in_order(one: Any, other: Any) -> tuple[Any, Any, Any]:
    return (one,), (other,), (one, other)


def of_both(one: Any, other: Any) -> tuple[Any, Any, Any]:
    return one, other, one | other


JOINED: dict[str, tuple[Any, Any, Any]] = {
    "work": of_both(frozenset({("a", 1)}), frozenset({("b", 2)})),
    "alerts": of_both(frozenset({"a"}), frozenset({"b"})),
    "circuits": in_order(CircuitChange("a", Circuit(), Circuit(), 1), CircuitChange("b", Circuit(), Circuit(), 2)),
    "due": of_both({"a": 1}, {"b": 2}),
    "canceled": in_order(JOB, OTHER),
    "unfinished": of_both(Unfinished(groups=frozenset({"a"})), Unfinished(operations=frozenset({"b"}))),
    "skipped": in_order("one tick", "another"),
    "branches": of_both({"a": ()}, {"b": ()}),
    "batches": in_order("one report", "another"),
    "fingerprints": of_both({"a": None}, {"b": "f"}),
    "calls": in_order(print, repr),
}
"""For each field of `Effects`: two values, and what joining them makes."""


@pytest.mark.parametrize(
    ("move", "status"),
    [
        (Move.SUCCEED, JobStatus.SUCCEEDED),
        (Move.FAIL, JobStatus.FAILED),
        (Move.GIVE_UP, JobStatus.FAILED),
        (Move.CANCEL, JobStatus.CANCELED),
        (Move.RETRY, JobStatus.PENDING),
        (Move.REQUEUE, JobStatus.PENDING),
    ],
)
def test_the_status_of_a_job_is_what_its_move_enters(move: Move, status: JobStatus):
    assert JOB._replace(move=move).status is status


@pytest.mark.parametrize(
    ("times", "run_ms"), [(None, None), (Times(None, 5_000, None), None), (Times(2_000, 5_999, 0), 3)]
)
def test_only_a_body_that_was_entered_has_run(times: Times | None, run_ms: int | None):
    assert JOB._replace(times=times).run_ms == run_ms


def test_an_outcome_names_no_error_where_there_is_none():
    assert JOB._replace(result="42").as_outcome[1:] == (JobStatus.SUCCEEDED, "shop:charge", "42", None, None, None)
    failed = JOB._replace(move=Move.FAIL, failure=Failure("no", "ValueError"), reason="non_retryable")
    assert failed.as_outcome[3:] == (None, "no", "ValueError", "non_retryable")


def test_effects_of_several_follow_ups_are_joined():
    change = CircuitChange("gateway", Circuit(), Circuit(), 7)
    one = Effects(frozenset({("a", 1)}), frozenset({"x"}), (change,), {"x": 1})
    other = Effects(frozenset({("a", 1), ("b", 2)}), frozenset({"y"}), (), {"y": 2})
    assert one | other == Effects(frozenset({("a", 1), ("b", 2)}), frozenset({"x", "y"}), (change,), {"x": 1, "y": 2})
    assert one | NO_EFFECTS is one
    assert NO_EFFECTS | one == one


@pytest.mark.parametrize("field", Effects._fields)
def test_no_field_of_effects_is_lost_where_they_are_joined(field: str):
    """J5.5: a new field needs an example here, and a line in `Effects.__or__`."""
    one, other, both = JOINED[field]
    empty = getattr(NO_EFFECTS, field)
    assert empty not in (one, other)
    joined = Effects(**{field: one}) | Effects(**{field: other})
    assert joined == Effects(**{field: both})
