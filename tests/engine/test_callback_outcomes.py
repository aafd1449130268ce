"""When callbacks follow: once per outcome, in its transaction, and for every way in which a job can end."""

from collections.abc import Sequence
from functools import partial
from typing import Any
from uuid import UUID

import pytest

from tests.engine import callback_bodies as bodies
from tests.engine.apps import LONG, ONLY_WAKEUPS, Apps, Gate, Shop, settled, until
from tests.engine.jobs import hold, seen
from tests.support.facts import rows
from windlass import Job, JobCompleted, JobStatus, NodeSettings, Settings, StoreUnavailableError, Windlass
from windlass.stores.database import Database

QUICK = Settings(node=NodeSettings(unknown_target_after=0, sweep_interval=0.05, recovery_interval=0.05))


def children(app: Windlass, parent: UUID) -> list[Job]:
    return [job for job in app.find() if job.parent_id == parent]


def all_quiet(app: Windlass) -> bool:
    return not [job for job in app.find() if job.status in (JobStatus.PENDING, JobStatus.RUNNING)]


def has_followed(app: Windlass, times: int) -> bool:
    return len(seen) == times and all_quiet(app)


def test_a_job_with_retries_left_runs_no_callback(app: Windlass):
    """J5.5: only the outcome counts, and only its own side: two failures and a success are one success."""
    report = app.job(bodies.report)
    handle = app.job(bodies.fail_twice).using(max_retries=2, on_success=report, on_failure=report).enqueue()
    with app.worker():
        assert handle.result(timeout=LONG) == "at last"
        until(lambda: all_quiet(app))
    (result,) = seen
    assert (result.succeeded, result.attempts, len(children(app, handle.id))) == (True, 3, 1)


def test_retries_that_run_out_are_one_failure(app: Windlass):
    """J5.5: four failed attempts, one callback."""
    handle = app.job(bodies.fail).using(max_retries=3, on_failure=app.job(bodies.report)).enqueue("boom")
    with app.worker():
        handle.join(timeout=LONG)
        until(lambda: all_quiet(app))
    (result,) = seen
    assert (result.failed, result.attempts) == (True, 4)


def test_a_dead_letter_that_fails_again_is_another_outcome(app: Windlass):
    """J5.5, J2.4: `retry()` starts the job over, callbacks included."""
    handle = app.job(bodies.fail).using(on_failure=app.job(bodies.report)).enqueue("boom")
    with app.worker():
        for times in (1, 2, 3):
            handle.join(timeout=LONG)
            until(partial(has_followed, app, times))
            assert len(children(app, handle.id)) == times
            assert times == 3 or handle.retry()
    assert {result.job_id for result in seen} == {handle.id}


def test_a_canceled_job_runs_no_callback(app: Windlass, gate: Gate):
    """J5.5, J2.2: neither while it waits nor while it runs, whatever its body then returns."""
    report = app.job(bodies.report)
    waiting = app.job(bodies.double).using(delay=3600, on_success=report, on_failure=report).enqueue(1)
    assert waiting.cancel()
    with app.worker():
        running = app.job(hold).using(on_success=report, on_failure=report).enqueue(gate.name)
        gate.wait_entered()
        assert running.cancel()
        gate.open()
    assert [job.status for job in app.find()] == [JobStatus.CANCELED] * 2
    assert seen == []


def test_a_timeout_is_a_failure_like_any_other(app: Windlass, gate: Gate):
    """J4.5, J5.5: through the failure path."""
    handle = app.job(hold).using(timeout=0.05, on_failure=app.job(bodies.report)).enqueue(gate.name)
    with app.worker():
        handle.join(timeout=LONG)
        until(lambda: seen)
    assert seen[0].error_class == "JobTimeoutError"


NEWER = """
from windlass import Windlass
app = Windlass({url!r})

@app.job
def fresh(n: int) -> int:
    return n * 2
"""


def test_a_job_that_fails_as_unknown_target_runs_its_callback(apps: Apps, shop: Shop):
    """J5.5, J6.3: the job ends outside of any attempt, in the maintenance of a node that does not know it."""
    module = shop.load(NEWER.format(url=apps.url))
    module.app.migrate()
    handle = module.fresh.using(on_failure=module.app.job(bodies.report), tags=["x"], correlation_id="c").enqueue(7)
    module.app.close()
    shop.unload()
    app = apps(settings=QUICK)
    app.job(bodies.report)
    with app.worker():
        until(lambda: seen)
    (result,) = seen
    assert (result.job_id, result.target) == (handle.id, f"{shop.name}:fresh")
    assert (result.args, result.tags, result.reason) == ((7,), ("x",), "target_not_found")
    assert (result.failed, result.error_class, result.attempts) == (True, "TargetNotFoundError", 0)
    (job,) = children(app, handle.id)
    assert (job.correlation_id, job.status) == ("c", JobStatus.SUCCEEDED)


def test_a_spent_crash_budget_runs_the_callback(apps: Apps):
    """J5.5, J7.4: so does a job that its workers do not survive."""
    app = apps(settings=Settings(node=NodeSettings(crash_budget=0, recovery_interval=0.05)))
    handle = app.job(bodies.double).using(on_failure=app.job(bodies.report)).enqueue(7)
    rows(apps.url, "UPDATE windlass_hot SET status = 'RUNNING', node = 'gone', fence = 1, picked_at = 1")
    with app.worker():
        assert settled(app, handle.id).reason == "worker_lost"
        until(lambda: seen)
        until(lambda: all_quiet(app))
    (result,) = seen
    assert (result.job_id, result.args, result.reason, result.error_class) == (
        handle.id,
        (7,),
        "worker_lost",
        "WorkerLostError",
    )


def test_a_denied_target_runs_its_callback(apps: Apps):
    """J5.5, J6.3: FAILED before its body was entered."""
    open_app = apps(allow=["tests.engine.callback_bodies"])
    handle = open_app.bind(bodies.double, 1).using(on_failure=bodies.report).enqueue()
    strict = apps()
    strict.job(bodies.report)
    with strict.worker():
        until(lambda: seen)
    assert (seen[0].job_id, seen[0].reason, seen[0].run_ms) == (handle.id, "target_not_allowed", None)


def test_a_callback_that_is_no_longer_allowed_is_refused_at_its_run(apps: Apps, caplog: pytest.LogCaptureFixture):
    """J5.5, J6.3: the policy is asked when the job is enqueued, and again before the callback runs."""
    open_app = apps(allow=["tests.engine.callback_bodies"])
    handle = open_app.bind(bodies.double, 1).using(on_success=bodies.report).enqueue()
    strict = apps()
    strict.job(bodies.double)
    with strict.worker():
        assert handle.result(timeout=LONG) == 2
        (callback,) = until(lambda: children(strict, handle.id))
        assert settled(strict, callback.id).reason == "target_not_allowed"
    assert seen == []


def test_a_callback_runs_at_once_here_and_on_another_node(apps: Apps):
    """J3.6, J5.5: nodes that never poll are woken for it, wherever its queue is served."""
    here, there = apps(settings=ONLY_WAKEUPS), apps(settings=ONLY_WAKEUPS)
    for app in (here, there):
        app.job(bodies.double)
        app.job(bodies.report)
    far_away = here.job(queue="ops")(bodies.areport)
    there.job(queue="ops")(bodies.areport)
    with there.worker(queues=["ops"]), here.worker(queues=["default"]):
        here.bind(bodies.double, 1).using(on_success=bodies.report).enqueue().result(timeout=LONG)
        until(lambda: len(seen) == 1)
        here.bind(bodies.double, 2).using(on_success=far_away).enqueue().result(timeout=LONG)
        until(lambda: len(seen) == 2)
    assert [result.value for result in seen] == [2, 4]


def test_a_commit_whose_answer_was_lost_runs_one_callback(apps: Apps, monkeypatch: pytest.MonkeyPatch):
    """J5.5, J4.3: the outcomes are found in the history when they are written again, and so are their callbacks."""
    app = apps()
    database = app._database
    lost = lose_answers(database, monkeypatch, times=2)
    report = app.job(bodies.report)
    events: list[JobCompleted] = []
    app.on(JobCompleted)(events.append)
    handles = app.enqueue_many([app.job(bodies.double).using(on_success=report).bind(n) for n in range(5)])
    with app.worker():
        assert [handle.result(timeout=LONG) for handle in handles] == [0, 2, 4, 6, 8]
        until(lambda: len(seen) == 5 and all_quiet(app))
    assert len(lost) == 2
    assert sorted(result.value for result in seen) == [0, 2, 4, 6, 8]
    assert len({event.job_id for event in events}) == len(events) == 10


def lose_answers(database: Database, monkeypatch: pytest.MonkeyPatch, times: int) -> list[Any]:
    """Let the first commits of outcomes happen, and lose their answers."""
    run = database.arun
    lost: list[Any] = []

    async def arun(plan: Any, *args: Any, **kwargs: Any) -> Any:
        answer = await run(plan, *args, **kwargs)
        if plan.__name__ == "_apply" and len(lost) < times:
            lost.append(answer)
            raise StoreUnavailableError("the answer was lost")
        return answer

    monkeypatch.setattr(database, "arun", arun)
    return lost


def test_only_outcomes_with_callbacks_need_a_transaction(apps: Apps, monkeypatch: pytest.MonkeyPatch):
    """J4.1, J5.5: a batch without callbacks is written as ever, also by a node that has callbacks to see to."""
    app = apps()
    database, batches = app._database, []
    run = database.arun

    async def arun(plan: Any, *args: Any, **kwargs: Any) -> Any:
        if plan.__name__ == "_apply":
            batches.append(args)
        return await run(plan, *args, **kwargs)

    monkeypatch.setattr(database, "arun", arun)
    report = app.job(bodies.report)
    double = app.job(bodies.double)
    with app.worker():
        assert double.enqueue(1).result(timeout=LONG) == 2
        assert double.using(max_retries=1, on_failure=report).enqueue(2).result(timeout=LONG) == 4
        double.using(on_success=report).enqueue(3).result(timeout=LONG)
        until(lambda: seen)
        until(lambda: all_quiet(app))
    followed = [attempts for attempts, ended, _ in batches if ended]
    assert [_values(attempts) for attempts in followed] == [["6"]]
    assert len(batches) >= 3


def _values(attempts: Sequence[Any]) -> list[str | None]:
    return [attempt.verdict.result for attempt in attempts]
