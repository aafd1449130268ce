"""Steering against workers and against each other: every state is left exactly once, in any order."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest

from tests.engine import jobs
from tests.engine.apps import LONG, Apps, count, query, settled
from windlass import JobStatus, Windlass

JOBS = 60
RACERS = 4

TERMINAL = {JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.CANCELED}


def raced(*actions: Callable[[], Any]) -> list[Any]:
    """Run actions on threads that are let go together; gives their answers in order."""
    gate = Barrier(len(actions))

    def run(action: Callable[[], Any]) -> Any:
        gate.wait(LONG)
        return action()

    with ThreadPoolExecutor(len(actions)) as pool:
        return [future.result(LONG) for future in [pool.submit(run, action) for action in actions]]


def only_one_place(url: str) -> None:
    """No job is both live and over, none is in neither place."""
    both = "SELECT count(*) FROM windlass_hot h JOIN windlass_done d ON d.id = h.id"
    assert query(url, both) == [(0,)]
    assert count(url, "hot") + count(url, "done") == count(url, "job")


def test_cancels_race_completions_and_one_of_them_wins_each_job(app: Windlass, apps: Apps):
    """J2.1, J2.2: True means CANCELED for ever, False means the outcome stands; nothing is in between."""
    note = app.job(jobs.anote)
    handles = app.enqueue_many([note.bind(str(n)) for n in range(JOBS)])
    with app.worker(), ThreadPoolExecutor(RACERS) as pool:
        canceled = list(pool.map(lambda handle: handle.cancel(), handles))
        for handle in handles:
            handle.join(timeout=LONG)
    for handle, was_canceled in zip(handles, canceled, strict=True):
        assert handle.status() is (JobStatus.CANCELED if was_canceled else JobStatus.SUCCEEDED)
        assert len([1 for attempt in app.history(handle.id) if attempt.outcome in ("succeeded", "canceled")]) <= 1
    only_one_place(apps.url)


def test_several_cancels_of_one_job_cancel_it_once(app: Windlass, apps: Apps):
    """J2.2: exactly one of them gets True."""
    note = app.job(jobs.note)
    for number in range(8):
        handle = note.enqueue(str(number))
        assert sorted(raced(*[handle.cancel] * RACERS)) == [False] * (RACERS - 1) + [True]
    only_one_place(apps.url)


def test_several_retries_of_one_dead_letter_revive_it_once(app: Windlass, apps: Apps):
    """J2.4: exactly one of them gets True, and it runs once more."""
    handle = app.job(jobs.fail).using(business_key="order:7").enqueue("x")
    with app.worker():
        handle.join(timeout=LONG)
    for _ in range(4):
        assert sorted(raced(*[handle.retry] * RACERS)) == [False] * (RACERS - 1) + [True]
        with app.worker():
            assert settled(app, handle.id).status is JobStatus.FAILED
    assert [attempt.outcome for attempt in app.history(handle.id)] == ["failed"] * 5
    only_one_place(apps.url)


@pytest.mark.parametrize("others", [("cancel", "resume"), ("cancel", "retry"), ("pause", "resume", "cancel", "retry")])
def test_verbs_that_race_leave_a_state_that_their_answers_explain(app: Windlass, apps: Apps, others: tuple[str, ...]):
    """J2.1: compare and set: a canceled job is over whatever came after, and is never both live and over."""
    note = app.job(jobs.note)
    for number in range(10):
        handle = note.using(business_key=f"order:{number}").enqueue(str(number))
        handle.pause()
        answers = dict(zip(others, raced(*[getattr(handle, verb) for verb in others]), strict=True))
        assert answers["cancel"] is True
        assert handle.status() is JobStatus.CANCELED
        assert answers.get("retry", False) is False
    only_one_place(apps.url)
    assert count(apps.url, "live_key") == 0


def test_pausing_and_resuming_under_load_loses_nothing_and_runs_nothing_twice(app: Windlass, apps: Apps):
    """J2.3: a worker claims at the same time; every job runs once in the end."""
    note = app.job(jobs.anote)
    handles = app.enqueue_many([note.bind(str(n)) for n in range(JOBS)])

    def flip(handle: Any) -> None:
        if handle.pause():
            assert handle.resume()

    with app.worker(), ThreadPoolExecutor(RACERS) as pool:
        list(pool.map(flip, handles))
        for handle in handles:
            assert handle.join(timeout=LONG) in TERMINAL
    assert sorted(jobs.seen, key=int) == [str(n) for n in range(JOBS)]
    only_one_place(apps.url)


def test_two_replacements_of_one_job_leave_one_successor(app: Windlass, apps: Apps):
    """J2.4: the second one finds the job ended, or replaces nothing."""
    note = app.job(jobs.note).using(delay=600)
    for number in range(6):
        old = note.enqueue(str(number))

        def replaced(old: Any = old) -> Any:
            try:
                return app.replace(old.id, note.bind("new"))
            except Exception as error:  # noqa: BLE001 - which one it is, is looked at below
                return error

        answers = raced(*[replaced] * 2)
        (winner,) = [answer for answer in answers if not isinstance(answer, Exception)]
        (loser,) = [answer for answer in answers if isinstance(answer, Exception)]
        assert type(loser).__name__ == "JobStateError"
        assert app.get(old.id).superseded_by == winner.id
    only_one_place(apps.url)
