"""Decisions about branches: tables of outcomes and judgements."""

import pytest

from windlass.domain.branches import (
    Branch,
    BranchDecision,
    FailedBranch,
    Guard,
    Judgement,
    PredicateError,
    asked_after,
    decide,
)
from windlass.domain.states import JobStatus

S = JobStatus
OK, NOT_OK = Branch("ok", "success"), Branch("not ok", "failure")
VALUE, CUSTOM = Branch("value", "result", "shop:small"), Branch("custom", "custom", "shop:odd")
CASE, OTHERWISE = Branch("case", "result", "shop:small", 0), Branch("otherwise", "result", None, 0)
ALL = (OK, NOT_OK, VALUE, CUSTOM, CASE, OTHERWISE)
YES, NO = Judgement(holds=True), Judgement(holds=False)
ERROR = PredicateError("ValueError: odd", "ValueError")
RAISED = Judgement(holds=False, error=ERROR)


@pytest.mark.parametrize(
    ("status", "asked"),
    [(S.SUCCEEDED, [VALUE, CUSTOM, CASE, OTHERWISE]), (S.FAILED, [CUSTOM]), (S.CANCELED, [])],
)
def test_predicates_are_called_according_to_the_outcome(status: JobStatus, asked: list[Branch]):
    """J8.2: those on the value only after success; none after a cancel."""
    assert asked_after(ALL, status) == asked


@pytest.mark.parametrize(
    ("status", "judgements", "chosen", "guarded", "failed"),
    [
        (S.SUCCEEDED, {}, [OK], [VALUE, CUSTOM, CASE, OTHERWISE], []),
        (S.SUCCEEDED, {"value": YES, "custom": YES, "case": YES, "otherwise": NO}, [OK, VALUE, CUSTOM, CASE], [], []),
        (S.SUCCEEDED, {"value": NO, "custom": NO, "case": NO, "otherwise": YES}, [OK, OTHERWISE], [], []),
        (S.SUCCEEDED, {"value": RAISED, "custom": YES}, [OK, CUSTOM], [CASE, OTHERWISE], ["value"]),
        (S.FAILED, {}, [NOT_OK], [CUSTOM], []),
        (S.FAILED, {"custom": YES}, [NOT_OK, CUSTOM], [], []),
        (S.FAILED, {"custom": NO}, [NOT_OK], [], []),
        (S.FAILED, {"custom": RAISED, "value": YES}, [NOT_OK], [], ["custom"]),
        (S.CANCELED, {"custom": YES, "value": YES}, [], [], []),
    ],
)
def test_branches_are_chosen_guarded_or_not_chosen_by_status_and_judgements(
    status: JobStatus, judgements, chosen, guarded, failed
):
    """J8.2: what was to be asked and was not is guarded; the rest is not chosen."""
    expected = BranchDecision(tuple(chosen), tuple(guarded), tuple(FailedBranch(job, ERROR) for job in failed))
    assert decide(ALL, status, judgements) == expected


def test_guard_of_a_choice_calls_earlier_predicates_first():
    """J8.2: first match only."""
    assert Guard("value", "shop:c", ("shop:a", "shop:b")).predicates == ("shop:a", "shop:b", "shop:c")
    assert Guard("value", None, ("shop:a",)).predicates == ("shop:a",)
