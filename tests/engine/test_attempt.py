"""An attempt by itself: its times by the store's clock, what is read of its row, and when it is over."""

import asyncio

import pytest

from windlass.domain.job import Claim, Payload
from windlass.domain.transition import Times, released
from windlass.engine import attempt as attempts
from windlass.engine.attempt import Attempt, BodyThread, Deadline

SECOND = 1_000_000
ID = "0198c0de-0000-7000-8000-000000000001"
CLAIM = Claim(ID, 7, "mail", "shop:charge", 1, 0, 2, due_at=40 * SECOND, picked_at=50 * SECOND)
PAYLOAD = Payload("[[],{}]", None, None, None, None, None, created_at=30 * SECOND)


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What the process's clock says; an attempt that came in at 100 is the store's second 50."""
    said = [100.0]
    monkeypatch.setattr(attempts, "monotonic", lambda: said[0])
    return said


def received(claim: Claim = CLAIM, payload: Payload | None = PAYLOAD) -> Attempt:
    return Attempt.of(claim, payload, 100.0)


@pytest.mark.parametrize(
    ("started", "created", "due", "times"),
    [
        (None, 30, 40, Times(None, 59 * SECOND, None)),
        (102.0, 30, 40, Times(52 * SECOND, 59 * SECOND, 12 * SECOND)),
        (102.0, 45, 40, Times(52 * SECOND, 59 * SECOND, 7 * SECOND)),
        (102.0, 30, 60, Times(52 * SECOND, 59 * SECOND, 0)),
    ],
    ids=["its body was not entered", "it waited since it was due", "it was due before it was made", "it came early"],
)
def test_times_are_those_of_the_stores_clock(
    now: list[float], started: float | None, created: int, due: int, times: Times
):
    """J2.5: the claim's own time plus what this process has measured since."""
    made = received(CLAIM._replace(due_at=due * SECOND), PAYLOAD._replace(created_at=created * SECOND))
    made.started = started
    now[0] = 109.0
    assert made.times() == times


def test_a_damaged_attempt_has_no_start(now: list[float]):
    """J2.5: its body must not be entered."""
    made = received(CLAIM._replace(target=None))  # type: ignore[arg-type]
    made.started = 101.0
    assert made.damage is not None
    assert made.times() == Times(None, 50 * SECOND, None)


@pytest.mark.parametrize(("expires", "expired"), [(None, False), (55 * SECOND, False), (54 * SECOND, True)])
def test_an_attempt_expires_by_the_stores_clock(now: list[float], expires: int | None, expired: bool):
    """J1.9: when it is about to start."""
    now[0] = 104.5
    assert received(CLAIM._replace(expires=expires)).expired is expired


@pytest.mark.parametrize(
    ("options", "max_retries", "damaged"),
    [(None, 0, False), ('{"max_retries":3}', 3, False), ('{"max_retries":"x"}', 0, True), ("no JSON", 0, True)],
)
def test_options_that_cannot_be_read_damage_the_attempt(options: str | None, max_retries: int, damaged: bool):
    """J4.1: a row that cannot be read fails alone."""
    made = received()
    made.read_payload(PAYLOAD._replace(options=options))
    assert (made.options.max_retries, made.damage is not None) == (max_retries, damaged)


def test_options_are_read_once():
    made = received()
    for retries in (3, 9):
        made.read_payload(PAYLOAD._replace(options=f'{{"max_retries":{retries}}}'))
    assert made.options.max_retries == 3


def test_the_payload_of_a_row_without_an_id_is_not_kept():
    """J4.1: nothing can be written about it."""
    assert received(CLAIM._replace(job_id="no id")).payload is None


async def test_an_attempt_is_over_when_neither_its_task_nor_its_body_runs():
    """J4.5: a thread that was interrupted may go on for a while."""
    made = received()
    assert made.over
    made.task = asyncio.create_task(asyncio.sleep(0))
    assert not made.over
    await made.task
    made.task, made.thread = None, BodyThread()
    assert (made.over, made.body_goes_on) == (True, False)
    made.thread.goes_on = True
    assert (made.over, made.body_goes_on) == (False, True)


def test_the_verdict_decides_whether_an_attempt_lingers():
    made = received()
    assert not made.lingers
    made.transition = released(CLAIM, Times(None, 0, None))
    assert not made.lingers
    made.transition = made.transition._replace(lingers=True)
    assert made.lingers


def test_the_timeout_is_that_of_the_deadline():
    made = received()
    assert made.timeout is None
    made.deadline = Deadline(2.5, ends_at=10.0, next_check=9.5)
    assert made.timeout == 2.5
