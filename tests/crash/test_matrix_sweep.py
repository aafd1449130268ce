"""Crash matrix: workers that die at their first, second, third … transaction, whatever it is."""

import pytest

from tests.crash.programs import bodies
from tests.support.crashing import KILLED, Stage
from tests.support.facts import one, rows
from windlass import Backoff

PAID = range(0, 24, 2)
RETRIED = range(1, 24, 2)
ANY_COMMIT = ("store.before_commit", "store.after_commit")
PATIENT = {"WINDLASS_NODE__CRASH_BUDGET": "100"}
"""So that no job is given up, however many workers die over it."""


def enqueue(stage: Stage) -> None:
    """Jobs with callbacks, and jobs with retries and keys."""
    app = stage.app
    soon = Backoff.fixed(0.1)
    calls = [app.bind(bodies.pay, n).using(on_success=bodies.follow) for n in PAID]
    fails = [app.bind(bodies.fail_until, n, 2).using(business_key=f"key-{n}") for n in RETRIED]
    calls += [call.using(max_retries=1, backoff=soon) for call in fails]
    app.enqueue_many(calls)


def sweep(stage: Stage, passes: range) -> None:
    """For each number two workers: one dies before that commit of its own, one after it."""
    enqueue(stage)
    for nth in passes:
        doomed = [stage.start(f"{point}=kill@{nth}", environ=PATIENT) for point in ANY_COMMIT]
        assert [worker.exit_code() for worker in doomed] == [KILLED] * 2
    stage.finished()
    ended, ran = len(PAID) + len(PAID) + len(RETRIED), stage.programs.ran
    assert rows(stage.url, "SELECT status, count(*) FROM windlass_done GROUP BY status") == [("SUCCEEDED", ended)]
    assert {int(n) for n in ran()} == {*PAID, *RETRIED}
    assert {int(n) for n in ran("followed")} == set(PAID)
    lost = one(stage.url, "SELECT count(*) FROM windlass_attempt WHERE outcome = 'lost'")
    assert len(ran()) + len(ran("followed")) <= ended + lost, "a body ran again though no attempt of it was lost"
    again = rows(stage.url, "SELECT DISTINCT attempts FROM windlass_done d JOIN windlass_job j ON j.id = d.id "
                            "WHERE j.business_key IS NOT NULL")  # fmt: skip
    assert again == [(2,)]


def test_workers_killed_at_each_of_their_first_commits_lose_and_repeat_nothing_that_was_committed(stage: Stage):
    """J4.3, J7.4, P9.C1, P9.C2, P9.C5: the promise of the engine, commit by commit."""
    sweep(stage, range(2, 12, 3))


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_workers_killed_at_each_of_their_first_sixty_commits(stage: Stage):
    """J4.3, J7.4, P9.C1, P9.C2, P9.C5: the same for many more."""
    sweep(stage, range(1, 61))
