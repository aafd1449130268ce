"""How long a job waits for a node that knows its target."""

from tests.engine import jobs
from tests.engine.apps import until
from tests.maintenance.moving import Moving
from tests.support.facts import one
from windlass import JobStatus, NodeSettings, Settings, Windlass

HASTY = Settings(node=NodeSettings(sweep_interval=0.05, recovery_interval=0.05, unknown_target_after=86_400))
HOUR = 3600.0


def passes(moving: Moving, number: int = 3) -> None:
    """Have the sweeper pass so many times more: each pass raises the fence of its lease by two."""
    fence = "SELECT max(fence) FROM windlass_lease WHERE name = 'sweeper' AND passed_at IS NOT NULL"
    begun = until(lambda: one(moving.url, fence))

    def passed() -> bool:
        moving.clock.advance(0.1)
        return bool(one(moving.url, fence) >= begun + 2 * number)

    until(passed)


def passed_over(app: Windlass, job_id: object) -> bool:
    return [attempt.outcome for attempt in app.history(job_id)] == ["passed_over"]  # type: ignore[arg-type]


def test_a_backlog_that_meets_an_older_release_is_not_failed(moving: Moving):
    """J6.3: jobs that were due for days, in an outage or a paused queue, wait for the newer release."""
    app = moving(settings=HASTY, clock=moving.clock)
    app.job(jobs.add)
    handle = app.enqueue_by_name("shop.new", [1])
    moving.clock.advance(72 * HOUR)
    with app.worker():
        until(lambda: passed_over(app, handle.id))
        passes(moving)
        assert handle.status() is JobStatus.PENDING


def test_a_policy_that_raises_temporarily_fails_no_jobs(moving: Moving):
    """J6.3: no policy could decide whether it may run; it runs once one can."""

    class Moody:
        broken = False

        def allows(self, target: str) -> bool:
            if self.broken:
                raise ConnectionError
            return True

    policy = Moody()
    app = moving(settings=HASTY, clock=moving.clock, target_policy=policy)
    handle = app.job(jobs.note).enqueue("x")
    moving.clock.advance(72 * HOUR)
    policy.broken = True
    with app.worker():
        until(lambda: passed_over(app, handle.id))
        passes(moving)
        policy.broken = False
        app.resume_queue("default")  # a wakeup
        assert handle.join(timeout=90) is JobStatus.SUCCEEDED


def test_a_target_that_a_node_knows_does_not_run_out_of_time(moving: Moving):
    """J6.3: its jobs wait in a paused queue for days; a node that knows it is there all the time."""
    app, newer = moving(settings=HASTY, clock=moving.clock), moving(settings=HASTY, clock=moving.clock)
    app.job(jobs.add)
    newer.job(name="shop.new")(jobs.note)
    handle = app.enqueue_by_name("shop.new", ["x"])
    with app.worker():
        until(lambda: passed_over(app, handle.id))
    app.pause_queue("default")
    since = "SELECT unknown_since FROM windlass_lane"
    begun = one(moving.url, since)
    with newer.worker():
        passes(moving)
        newer.enqueue_by_name("shop.new", ["y"], queue="other")  # a wakeup
        until(lambda: one(moving.url, since) > begun)
        assert handle.status() is JobStatus.PENDING
        newer.resume_queue("default")
        assert handle.join(timeout=90) is JobStatus.SUCCEEDED


def test_an_outage_of_all_workers_does_not_count(moving: Moving):
    """J6.3: after two days without a worker, the first one of the older release fails nothing."""
    app = moving(settings=HASTY, clock=moving.clock)
    app.job(jobs.add)
    handle = app.enqueue_by_name("shop.new", [1])
    with app.worker():
        until(lambda: passed_over(app, handle.id))
        passes(moving)
    moving.clock.advance(48 * HOUR)
    with app.worker():
        passes(moving)
        assert handle.status() is JobStatus.PENDING
