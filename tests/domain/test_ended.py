"""Ended jobs and the effects of follow-ups."""

import pytest

from windlass.domain.circuit import Circuit, CircuitChange
from windlass.domain.ended import NO_EFFECTS, Effects, Ended
from windlass.domain.states import JobStatus, Move
from windlass.domain.transition import Failure, Times

JOB = Ended("id", "shop:charge", "default", 2, Move.SUCCEED)


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
