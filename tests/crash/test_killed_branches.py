"""Workers that die while the branches of a job are judged, and jobs that end because their workers died."""

from collections import Counter
from typing import Any

import pytest

from tests.crash.programs import bodies
from tests.support.crashing import KILLED, Stage
from tests.support.facts import one, rows, statuses
from windlass import Call, JobHandle

VICTIM, OTHERS = "victim", "others"
UNRELEASED = "SELECT count(*) FROM windlass_hot WHERE due IS NULL"
GUARDED = "SELECT count(*) FROM windlass_flow WHERE follows = 6"


def call(stage: Stage, number: int, body: Any = bodies.note, queue: str = OTHERS) -> Call[Any]:
    return stage.app.bind(body, number).using(queue=queue)


def branched(stage: Stage, body: Any = bodies.note) -> JobHandle[Any]:
    """A job of the victim with a branch that fires after any end, one that never does, and a chain."""
    head = call(stage, 0, body, VICTIM).when(bodies.is_over, call(stage, 1)).when(bodies.is_never, call(stage, 2))
    return head.when_result(bodies.is_zero, call(stage, 3)).then(call(stage, 4)).enqueue()


def ran(stage: Stage) -> dict[int, int]:
    return dict(Counter(map(int, stage.programs.ran())))


@pytest.mark.parametrize("point", ["judge.before", "judge.after"])
def test_worker_killed_while_branches_are_judged_has_decided_nothing(stage: Stage, point: str):
    """J8.2, J4.3, J7.4: neither outcome nor decisions are stored; the job runs again, each branch that fires once."""
    handle = branched(stage)
    worker = stage.start(f"{point}=kill", [VICTIM])
    assert worker.exit_code() == KILLED, worker.printed
    assert (one(stage.url, UNRELEASED), statuses(stage.url)) == (4, {"RUNNING": 1, "PENDING": 4})
    stage.finished()
    assert stage.history(handle) == ["lost", "succeeded"]
    assert ran(stage) == {0: 2, 1: 1, 3: 1, 4: 1}
    assert statuses(stage.url) == {"SUCCEEDED": 4, "CANCELED": 1}
    assert one(stage.url, GUARDED) == 0


def test_branches_of_a_job_without_an_attempt_call_their_own_predicates(stage: Stage):
    """J8.2, J7.4: no attempt was left to judge; what was released guarded runs once, or is not chosen."""
    handle = branched(stage)
    budget = {"WINDLASS_NODE__CRASH_BUDGET": "0"}
    worker = stage.start("run.after_body=kill", [VICTIM], budget)
    assert worker.exit_code() == KILLED, worker.printed
    stage.finished(environ=budget)
    assert (stage.history(handle), stage.app.get(handle.id).reason) == (["lost"], "worker_lost")
    assert ran(stage) == {0: 1, 1: 1}
    reasons = Counter(reason for (reason,) in rows(stage.url, "SELECT reason FROM windlass_done"))
    assert reasons == {"worker_lost": 1, None: 1, "not_chosen": 2, "upstream_failed": 1}
    assert one(stage.url, GUARDED) == 2


def test_worker_killed_while_it_releases_guarded_followers_has_released_none(stage: Stage):
    """J8.2, J4.3: the failure and the guards are one transaction."""
    handle = branched(stage)
    budget = {"WINDLASS_NODE__CRASH_BUDGET": "0"}
    assert stage.start("run.after_body=kill", [VICTIM], budget).exit_code() == KILLED
    second = stage.start("recovery.before_commit=kill", [VICTIM], budget)
    assert second.exit_code() == KILLED, second.printed
    assert (one(stage.url, GUARDED), one(stage.url, UNRELEASED)) == (0, 4)
    stage.finished(environ=budget)
    assert (stage.app.get(handle.id).reason, ran(stage)) == ("worker_lost", {0: 1, 1: 1})
