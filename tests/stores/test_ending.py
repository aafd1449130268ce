"""The seam of a job's end: which follow-ups are asked, and what they answer."""

from collections.abc import Sequence

import pytest

from windlass.domain.ended import NO_EFFECTS, Effects, Ended
from windlass.domain.job import Payload
from windlass.domain.states import Move
from windlass.stores.dialect import Dialect
from windlass.stores.ending import FollowUp, end, end_canceled, is_followed, with_payloads
from windlass.stores.plan import Plan, Step

PAYLOAD = Payload("[[],{}]", None, None, None, None, None, 0)


class Fake(Dialect):
    name = "fake"


def job(name: str, move: Move, payload: Payload | None = None) -> Ended:
    return Ended(name, "shop:charge", "default", 2, move, payload=payload)


def noting(level: int, *moves: Move, only: str = "") -> FollowUp:
    """A follow-up that writes one step, and answers the jobs it was given as work of this level."""

    def plan(dialect: Dialect, ended: Sequence[Ended]) -> Plan[Effects]:
        del dialect
        yield Step(f"write {level}")
        return Effects(work=frozenset((one.job_id, level) for one in ended))

    return FollowUp(frozenset(moves), lambda ended: only in ended.job_id, plan)


def driven(plan: Plan[Effects]) -> tuple[list[str], Effects]:
    steps: list[str] = []
    try:
        while True:
            steps.append(plan.send(None).name)
    except StopIteration as stop:
        return steps, stop.value


def test_a_follow_up_is_given_the_jobs_of_its_moves_that_it_concerns():
    """J5.5: each once, and all of them together."""
    ended = [job("a", Move.SUCCEED), job("b", Move.FAIL), job("ab", Move.FAIL), job("c", Move.RETRY)]
    follow_ups = [noting(1, Move.FAIL, only="a"), noting(2, Move.SUCCEED, Move.FAIL), noting(3, Move.RETRY)]
    steps, effects = driven(end(Fake(), ended, follow_ups))
    assert steps == ["write 1", "write 2", "write 3"]
    assert effects.work == {("ab", 1), ("a", 2), ("b", 2), ("ab", 2), ("c", 3)}


def test_jobs_that_concern_no_follow_up_cost_no_step():
    """J4.1: plain jobs pay nothing."""
    assert driven(end(Fake(), [job("a", Move.SUCCEED)], [noting(1, Move.FAIL)])) == ([], NO_EFFECTS)
    assert driven(end(Fake(), [], [noting(1, Move.FAIL)])) == ([], NO_EFFECTS)


def canceling(*canceled: Ended) -> FollowUp:
    """A follow-up of failures that cancels other jobs."""

    def plan(dialect: Dialect, ended: Sequence[Ended]) -> Plan[Effects]:
        del dialect
        yield Step("cancel")
        return Effects(canceled=canceled if any(one.move is Move.FAIL for one in ended) else ())

    return FollowUp(frozenset({Move.FAIL, Move.CANCEL}), lambda ended: not ended.in_cascade, plan)


def test_jobs_that_a_follow_up_cancels_are_given_to_the_others():
    """J5.5: whatever their order is; to its own feature only if it asks for them."""
    canceled = [job(name, Move.CANCEL)._replace(in_cascade=True) for name in ("x", "y")]
    follow_ups = [noting(1, Move.CANCEL), canceling(*canceled), noting(2, Move.FAIL, Move.CANCEL, only="y")]
    steps, effects = driven(end(Fake(), [job("a", Move.FAIL)], follow_ups))
    assert steps == ["cancel", "write 1", "write 2"]
    assert effects == Effects(work=frozenset({("x", 1), ("y", 1), ("y", 2)}), canceled=tuple(canceled))


def test_canceled_jobs_that_concern_no_follow_up_cost_no_step():
    """J4.1: nor do those of a plan that ends no other job."""
    canceled = Effects(canceled=(job("x", Move.CANCEL),))
    assert driven(end_canceled(Fake(), canceled, [noting(1, Move.FAIL)])) == ([], canceled)
    assert driven(end_canceled(Fake(), canceled, ())) == ([], canceled)
    assert driven(end_canceled(Fake(), NO_EFFECTS, [noting(1, Move.CANCEL)])) == ([], NO_EFFECTS)


def test_follow_ups_of_a_job_are_known_before_the_transaction():
    follow_ups = [noting(1, Move.FAIL, only="a"), noting(2, Move.CANCEL)]
    ended = [job("a", Move.FAIL), job("b", Move.FAIL), job("b", Move.CANCEL)]
    assert [is_followed(one, follow_ups) for one in ended] == [True, False, True]


def test_payloads_are_read_only_where_they_are_missing():
    """J5.5: the completer has them; recovery has not."""
    known = job("a", Move.SUCCEED, PAYLOAD)
    plan = with_payloads(Fake(), [known, job("b", Move.FAIL), job("gone", Move.FAIL)])
    assert next(plan).params["ids"] == '["b","gone"]'
    with pytest.raises(StopIteration) as read:
        plan.send([("b", *PAYLOAD)])
    assert [one.payload for one in read.value.value] == [PAYLOAD, PAYLOAD, None]
    with pytest.raises(StopIteration) as unread:
        next(with_payloads(Fake(), [known]))
    assert unread.value.value == [known]
