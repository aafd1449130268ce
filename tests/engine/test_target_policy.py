"""Which targets a node runs, refuses, or leaves to others."""

import pytest

from tests.engine import jobs
from tests.engine.apps import LONG, ONLY_WAKEUPS, Apps, Shop, count, settled, until
from windlass import (
    ConfigurationError,
    JobDeadLettered,
    JobFailed,
    JobStatus,
    NodeSettings,
    Settings,
    TargetNotAllowedError,
    Windlass,
)

NEWER = """
from windlass import Windlass
app = Windlass({url!r})
@app.job(max_retries=2)
def fresh(number: int) -> int:
    return number * 2
"""


def test_a_worker_with_nothing_allowed_refuses_to_start_with_advice(app: Windlass):
    """J6.3: deny by default; nothing registered and nothing allowed is a mistake, not an idle worker."""
    with pytest.raises(ConfigurationError, match=r"@app\.job.*allow="), app.worker():
        pass
    app.job(jobs.add)
    with app.worker():
        assert app.bind(jobs.add, 1, 2).enqueue().result(timeout=LONG) == 3


async def test_the_same_holds_on_the_callers_loop(app: Windlass):
    """J6.3: `async with` refuses alike, and the application can be used afterwards."""
    with pytest.raises(ConfigurationError, match="nothing allowed"):
        async with app.worker():
            pass
    add = app.job(jobs.add)
    async with app.worker():
        assert await (await add.aenqueue(1, 2)).aresult(timeout=LONG) == 3


def test_a_target_is_checked_at_enqueue(app: Windlass, apps: Apps):
    """J6.3: what is neither registered nor allowed is refused before it is stored."""
    app.job(jobs.add)
    with pytest.raises(TargetNotAllowedError, match=r"tests\.engine\.jobs:fail"):
        app.bind(jobs.fail, "x")
    assert count(apps.url, "job") == 0


def test_a_denied_target_fails_at_once_wherever_it_is_met(app: Windlass, apps: Apps):
    """J6.3: checked again before every run; FAILED as target_not_allowed, without entering it or spending a retry."""
    strict = apps()
    strict.job(jobs.add)
    denied = app.job(max_retries=5)(jobs.note).enqueue("must not run")
    with strict.worker():
        job = settled(strict, denied.id)
    assert (job.status, job.reason, job.error_class) == (
        JobStatus.FAILED,
        "target_not_allowed",
        "TargetNotAllowedError",
    )
    assert "allow=" in str(job.error)
    assert job.attempts == 0
    assert jobs.seen == []


def enqueue_unknown(apps: Apps, shop: Shop, number: int = 1) -> list:
    """Jobs of a module that exists nowhere any more: as a node sees those of a newer release."""
    module = shop.load(NEWER.format(url=apps.url))
    module.app.migrate()
    handles = module.app.enqueue_many([module.fresh.bind(n) for n in range(number)])
    module.app.close()
    shop.unload()
    return [handle.id for handle in handles]


def test_a_job_of_an_unknown_target_runs_on_a_node_that_knows_it(app: Windlass, apps: Apps, shop: Shop):
    """J6.3: rolling deploy: the old node leaves it PENDING with no attempt spent, the new node runs it."""
    (unknown,) = enqueue_unknown(apps, shop)
    app.job(jobs.add)
    with app.worker():
        until(lambda: [attempt.outcome for attempt in app.history(unknown)] == ["passed_over"])
        assert app.bind(jobs.add, 1, 2).enqueue().result(timeout=LONG) == 3
        job = app.get(unknown)
        assert (job.status, job.attempts, job.error) == (JobStatus.PENDING, 0, None)
        module = shop.load(NEWER.format(url=apps.url))
        with module.app.worker():
            assert module.fresh.handle(unknown).result(timeout=LONG) == 0
        module.app.close()
    assert [attempt.outcome for attempt in app.history(unknown)] == ["passed_over", "succeeded"]


def test_many_unknown_jobs_do_not_block_a_known_one(apps: Apps, shop: Shop):
    """J6.3: 300 jobs of unknown targets are passed over once each, and the jobs behind them run."""
    unknown = enqueue_unknown(apps, shop, 300)
    app = apps(settings=ONLY_WAKEUPS)
    add = app.job(jobs.add)
    with app.worker(concurrency=5):
        assert add.enqueue(1, 2).result(timeout=LONG) == 3
        assert add.enqueue(3, 4).result(timeout=LONG) == 7
        assert {app.get(job).attempts for job in unknown[::50]} == {0}
    assert {len(app.history(job)) for job in unknown[::50]} == {1}, "met once each, then left alone"
    module = shop.load(NEWER.format(url=apps.url))
    with module.app.worker():
        assert [module.fresh.handle(job).result(timeout=LONG) for job in unknown] == [n * 2 for n in range(300)]
    module.app.close()


def test_a_target_that_no_node_has_known_for_too_long_fails(apps: Apps, shop: Shop):
    """J6.3, J5.8: after node.unknown_target_after the job is FAILED as target_not_found, and an event is published."""
    (unknown,) = enqueue_unknown(apps, shop)
    app = apps(
        settings=Settings(node=NodeSettings(unknown_target_after=0, sweep_interval=0.05, recovery_interval=0.05))
    )
    app.job(jobs.add)
    events: list = []
    app.on(JobFailed)(events.append)
    app.on(JobDeadLettered)(events.append)
    with app.worker():
        job = settled(app, unknown)
    assert (job.status, job.reason, job.error_class, job.attempts) == (
        JobStatus.FAILED,
        "target_not_found",
        "TargetNotFoundError",
        0,
    )
    assert "fresh" in str(job.error)
    assert [type(event) for event in events] == [JobFailed, JobDeadLettered]
    assert events[1].reason == "target_not_found"


def test_a_target_that_fails_to_import_is_unknown_here(apps: Apps, shop: Shop):
    """J6.3: an allowed module that cannot be imported on this node is left to nodes where it can."""
    (unknown,) = enqueue_unknown(apps, shop)
    with pytest.raises(RuntimeError, match="broken"):
        shop.load("raise RuntimeError('broken release')")
    app = apps(allow=[shop.name])
    with app.worker():
        until(lambda: [attempt.outcome for attempt in app.history(unknown)] == ["passed_over"])
    job = app.get(unknown)
    assert (job.status, job.attempts) == (JobStatus.PENDING, 0)


class Moody:
    """A policy that returns, or raises, what it was given."""

    def __init__(self, answer: object) -> None:
        self.answer = answer

    def allows(self, target: str) -> bool:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer  # type: ignore[return-value]


TROUBLE = [
    (RuntimeError("token=hunter2"), "raised RuntimeError"),
    (None, "answered with NoneType, not True or False"),
    ("yes", "answered with str, not True or False"),
]


@pytest.mark.parametrize(("answer", "trouble"), TROUBLE, ids=["raises", "None", "text"])
def test_a_target_is_not_enqueued_if_the_policy_fails(apps: Apps, answer: object, trouble: str):
    """J6.3: no answer is no consent; the error says what the policy did."""
    app = apps(target_policy=Moody(answer))
    with pytest.raises(TargetNotAllowedError, match=f"the target policy {trouble}") as caught:
        app.job(jobs.note).enqueue("x")
    assert "hunter2" not in str(caught.value)
    assert count(apps.url, "job") == 0


@pytest.mark.parametrize(("answer", "trouble"), TROUBLE, ids=["raises", "None", "text"])
def test_a_job_neither_runs_nor_is_lost_if_the_policy_fails(
    apps: Apps, answer: object, trouble: str, caplog: pytest.LogCaptureFixture
):
    """J6.3: a broken policy runs nothing and fails nothing: its jobs wait, here or elsewhere, for one that works."""
    policy = Moody(True)
    app = apps(target_policy=policy)
    handle = app.job(jobs.note).enqueue("ran")
    policy.answer = answer
    with app.worker():
        until(lambda: [attempt.outcome for attempt in app.history(handle.id)] == ["passed_over"])
        assert (handle.status(), jobs.seen) == (JobStatus.PENDING, [])
        assert f"the target policy {trouble}" in caplog.text
        assert "hunter2" not in caplog.text
        policy.answer = True
        app.resume_queue("default")  # a wakeup
        assert handle.join(timeout=LONG) is JobStatus.SUCCEEDED
    assert jobs.seen == ["ran"]


def test_a_policy_replaces_the_default_for_registered_functions_too(apps: Apps):
    """J6.3: asked at enqueue and again before the run, with the stored name; its no is final."""
    policy = Moody(True)
    app = apps(target_policy=policy)
    handle = app.job(max_retries=3)(jobs.note).enqueue("x")
    policy.answer = False
    with pytest.raises(TargetNotAllowedError, match="may not run"):
        app.job(jobs.note).enqueue("y")
    with app.worker():
        job = settled(app, handle.id)
    assert (job.status, job.reason, job.attempts, jobs.seen) == (JobStatus.FAILED, "target_not_allowed", 0, [])
