"""Jobs that are canceled while a claim that brings them is on its way."""

import pytest

from windlass.domain.job import Claim
from windlass.engine import canceled_jobs
from windlass.engine.attempt import Attempt
from windlass.engine.canceled_jobs import MAX_REPORTED, REMEMBERED, CanceledJobs


def attempt(job_id: str) -> Attempt:
    return Attempt(Claim(job_id, 7, "mail", "shop:charge", 0, 0, 2, 10, 20), None, received=0.0)


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    said = [0.0]
    monkeypatch.setattr(canceled_jobs, "monotonic", lambda: said[0])
    return said


@pytest.fixture
def rung(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    rings: list[str] = []
    monkeypatch.setattr("windlass.runtime.service.Bell.ring", lambda bell: rings.append("rung"))
    return rings


def let_in(known: CanceledJobs, *ids: str) -> tuple[list[str], list[str]]:
    """Ids of those that may begin, and of those that are refused."""
    refused: list[Attempt] = []
    wanted = known.without([attempt(job_id) for job_id in ids], refused.append)
    return [one.claim.job_id for one in wanted], [one.claim.job_id for one in refused]


def test_a_job_that_was_canceled_does_not_begin(now: list[float]):
    """J2.2: for as long as its claim may be on its way."""
    known = CanceledJobs()
    known.add(["a"])
    assert let_in(known, "a", "b") == (["b"], ["a"])
    now[0] = REMEMBERED - 0.1
    known.add(["c"])
    assert let_in(known, "a", "b", "c") == (["b"], ["a", "c"])
    now[0] = REMEMBERED + 0.1
    known.add([])
    assert let_in(known, "a", "c") == (["a"], ["c"])


def test_a_notified_cancel_is_checked_in_the_store(now: list[float], rung: list[str]):
    """J2.2: every role may send a notification."""
    known = CanceledJobs()
    known.report(["a", "x"])
    assert (known.take_in_question(), rung) == (set(), [])
    assert let_in(known, "a", "b") == (["a", "b"], [])
    assert (known.take_in_question(), rung) == ({"a"}, ["rung"])
    assert known.take_in_question() == set(), "once"
    now[0] = REMEMBERED + 0.1
    assert let_in(known, "x") == (["x"], [])
    assert (known.take_in_question(), rung) == (set(), ["rung"])


def test_a_notified_cancel_of_a_running_job_triggers_a_query_at_once(rung: list[str]):
    known = CanceledJobs()
    known.question(["a"])
    known.question(["b"])
    assert (known.take_in_question(), len(rung)) == ({"a", "b"}, 2)


def test_a_flood_of_notifications_is_not_remembered(now: list[float]):
    """J3.6: what is forgotten costs latency only."""
    known = CanceledJobs()
    known.report(map(str, range(MAX_REPORTED)))
    known.report(["one more"])
    let_in(known, "one more", "7")
    assert known.take_in_question() == {"7"}
