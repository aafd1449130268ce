"""Crash matrix: workers that die at their first, second, third … transaction, whatever it is."""

from collections.abc import Sequence

import pytest

from tests.crash.programs import bodies
from tests.support.crashing import KILLED, Stage
from tests.support.facts import one, rows
from tests.support.invariants import check_gates
from windlass import Backoff

JOBS = 12
PLACES = 5
"""Of each gate: fewer than there are jobs, and enough for live nodes while dead ones still hold some."""
ANY_COMMIT = ("store.before_commit", "store.after_commit")
PATIENT = {"WINDLASS_NODE__CRASH_BUDGET": "100"}
"""So that no job is given up, however many workers die over it."""


def enqueue(stage: Stage, number: int) -> None:
    """Jobs of a limited queue with callbacks, and jobs behind a resource with retries and keys, in turn."""
    app, soon, numbers = stage.app, Backoff.fixed(0.1), range(number * JOBS, (number + 1) * JOBS)
    calls = [app.bind(bodies.pay, n).using(queue="mail", on_success=bodies.follow) for n in numbers[::2]]
    keys = [(n, f"key-{n}") for n in numbers[1::2]]
    fails = [app.bind(bodies.fail_until, n, 2).using(business_key=key, resource="stripe") for n, key in keys]
    app.enqueue_many(calls + [call.using(max_retries=1, backoff=soon) for call in fails])


def sweep(stage: Stage, passes: Sequence[int]) -> None:
    """For each number two workers: one dies before that commit of its own, one after it."""
    stage.app.configure_resource("stripe", PLACES)
    stage.app.limit_queue("mail", concurrency=PLACES, create=True)
    for number, nth in enumerate(passes):
        enqueue(stage, number)
        doomed = [stage.start(f"{point}=kill@{nth}", environ=PATIENT) for point in ANY_COMMIT]
        assert [worker.exit_code() for worker in doomed] == [KILLED] * 2
        check_gates(stage.url)
    stage.finished()
    count, ran = len(passes) * JOBS, stage.programs.ran
    ended = count + count // 2
    assert rows(stage.url, "SELECT status, count(*) FROM windlass_done GROUP BY status") == [("SUCCEEDED", ended)]
    assert {int(n) for n in ran()} == set(range(count))
    assert {int(n) for n in ran("followed")} == set(range(0, count, 2))
    lost = one(stage.url, "SELECT count(*) FROM windlass_attempt WHERE outcome = 'lost'")
    assert len(ran()) + len(ran("followed")) <= ended + lost, "a body ran again though no attempt of it was lost"
    tried_twice = """SELECT DISTINCT attempts FROM windlass_done d JOIN windlass_job j ON j.id = d.id
        WHERE j.business_key IS NOT NULL"""
    assert rows(stage.url, tried_twice) == [(2,)]


def test_workers_killed_at_each_of_their_first_commits_lose_and_repeat_nothing_that_was_committed(stage: Stage):
    """J4.3, J7.4, J6.2, P9.C1, P9.C2, P9.C5: the promise of the engine, commit by commit; every place comes back."""
    sweep(stage, (2, 4, 6, 9))


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_workers_killed_at_each_of_their_first_thirty_commits(stage: Stage):
    """J4.3, J7.4, P9.C1, P9.C2, P9.C5: the same for many more."""
    sweep(stage, range(1, 31))
