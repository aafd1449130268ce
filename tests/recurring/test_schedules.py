"""`app.schedule` and `app.schedules`: kept until removed, changed by key, steered by name."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.recurring import recurring_bodies as bodies
from tests.recurring.recurring_bodies import RAN
from windlass import (
    ConfigurationError,
    DuplicateBusinessKeyError,
    InvalidOptionError,
    JobStatus,
    UnknownResourceError,
    Windlass,
    every,
    group,
)
from windlass.domain.clock import SystemClock, VirtualClock, from_micros
from windlass.testing import drain, tick

HOUR = 3600


@pytest.fixture
def sync(app: Windlass) -> Any:
    return app.job(bodies.sync)


def test_a_stored_schedule_fires_its_call(app: Windlass, sync: Any, clock: VirtualClock):
    """J9.4: with its arguments and options; the same call again changes nothing, another one changes it in place."""
    app.schedule("sync", every(hours=1), sync.using(queue="mail", tags=["eu"]).bind("eu"))
    clock.advance(HOUR / 2)
    app.schedule("sync", every(hours=1), sync.using(queue="mail", tags=["eu"]).bind("eu"))
    clock.advance(HOUR / 2)
    assert tick(app) == 1
    (job,) = app.find(tag="eu")
    assert (job.queue, job.kwargs or job.args) == ("mail", ("eu",))
    app.schedule("sync", every(hours=1), sync.bind("us"))
    clock.advance(HOUR)
    assert (tick(app), drain(app).succeeded, RAN) == (1, 2, ["eu", "us"])


async def test_every_verb_has_an_async_twin(app: Windlass, sync: Any):
    """J9.4: the same, awaited."""
    await app.aschedule("sync", "0 * * * *", sync.bind("eu"))
    assert [one.key for one in await app.schedules.alist()] == ["sync"]
    assert await app.schedules.apause("sync")
    assert await app.schedules.aresume("sync")
    handle = await app.schedules.atrigger("sync")
    assert handle is not None
    assert await handle.astatus() is JobStatus.PENDING
    assert await app.schedules.aremove("sync")
    assert not await app.schedules.aremove("sync")


def test_pause_resume_trigger_and_remove(app: Windlass, sync: Any, clock: VirtualClock):
    """J9.3, J9.4: bools, and a handle; unknown keys are False and None."""
    app.schedule("sync", every(hours=1), sync.bind("eu"))
    assert app.schedules.pause("sync")
    (paused,) = app.schedules.list()
    assert (paused.state, paused.paused, paused.next_at) == ("paused", True, None)
    clock.advance(5 * HOUR)
    assert tick(app) == 0
    handle = app.schedules.trigger("sync")
    assert handle is not None
    drain(app)
    assert handle.result(timeout=0) == "eu"
    assert app.schedules.resume("sync")
    (resumed,) = app.schedules.list()
    assert resumed.next_at == clock.now() + timedelta(hours=1)
    assert app.schedules.remove("sync")
    assert app.schedules.list() == []
    steered = (app.schedules.pause("sync"), app.schedules.resume("sync"), app.schedules.remove("sync"))
    assert (steered, app.schedules.trigger("sync")) == ((False, False, False), None)


def test_a_declared_schedule_is_changed_in_the_code(app: Windlass, sync: Any):
    """J9.4: `remove` and `app.schedule` say so, and pause works."""
    app.recurring("0 * * * *", key="beat")(bodies.beat)
    with pytest.raises(ConfigurationError, match="is declared with"):  # also before a worker has stored it
        app.schedule("beat", "0 * * * *", sync.bind("eu"))
    tick(app)
    with pytest.raises(ConfigurationError, match="pause it, or take it out of the code"):
        app.schedules.remove("beat")
    with pytest.raises(ConfigurationError, match="is declared with"):
        app.schedule("beat", "0 * * * *", sync.bind("eu"))
    assert app.schedules.pause("beat")


@pytest.mark.parametrize("policy", ["raise", "return_existing", "replace"])
def test_a_job_whose_key_a_schedule_holds_gets_an_error_that_names_it(app: Windlass, sync: Any, policy: Any):
    """J1.5: it is neither returned nor replaced, which only jobs can be."""
    app.schedule("sync", every(hours=1), sync.bind("eu"))
    with pytest.raises(DuplicateBusinessKeyError, match="is the key of a schedule") as refused:
        sync.using(business_key="sync", on_conflict=policy).enqueue("x")
    assert (refused.value.key, refused.value.kind) == ("sync", "schedule")
    with pytest.raises(DuplicateBusinessKeyError, match="is the key of a schedule"):
        sync.using(business_key="sync", on_conflict=policy).bind("x").then(sync.bind("y")).enqueue()


def test_a_schedule_whose_key_a_job_holds_gets_an_error_that_names_it(app: Windlass, sync: Any):
    """J1.5: nothing is stored."""
    job = sync.using(business_key="sync").enqueue("x")
    with pytest.raises(DuplicateBusinessKeyError) as refused:
        app.schedule("sync", every(hours=1), sync.bind("eu"))
    assert (refused.value.holder, refused.value.kind, app.schedules.list()) == (job.id, "job", [])


def test_a_retry_whose_key_a_schedule_holds_gets_an_error_that_names_it(app: Windlass, sync: Any):
    """J1.5, J2.4: a dead letter cannot take it back."""
    dead = app.job(bodies.broken).using(business_key="sync").enqueue()
    drain(app)
    assert dead.status() is JobStatus.FAILED
    app.schedule("sync", every(hours=1), sync.bind("eu"))
    with pytest.raises(DuplicateBusinessKeyError, match="is the key of a schedule"):
        dead.retry()


def test_a_call_that_cannot_be_scheduled_is_refused(app: Windlass, sync: Any):
    """J9.4: flows, waits for signals, jobs without arguments, options of single jobs, unknown resources, a past end."""
    refused: list[tuple[Any, str]] = [
        (sync.bind("a").then(sync.bind("b")), "body enqueues the flow"),
        (group(sync.bind("a")), "body enqueues the flow"),
        (sync, r"bind its arguments"),
        ("sync", "needs a call"),
        (sync.using(idempotency_key="x").bind("a"), "idempotency_key"),
        (sync.using(delay=5).bind("a"), "delay"),
        (sync.bind("a").await_signal("go"), r"waits for no signal, got await_signal\('go'\)"),
    ]
    for call, said in refused:
        with pytest.raises(InvalidOptionError, match=said):
            app.schedule("sync", every(hours=1), call)
    with pytest.raises(UnknownResourceError):
        app.schedule("sync", every(hours=1), sync.using(resource="stripe").bind("a"))
    with pytest.raises(InvalidOptionError, match="must have a tick in the future"):
        app.schedule("sync", every(hours=1), sync.bind("a"), end=datetime(2029, 1, 1, tzinfo=UTC))
    with pytest.raises(InvalidOptionError, match="must have a tick in the future"):
        app.schedule("sync", "0 0 2 * * ? 2029", sync.bind("a"))
    assert app.schedules.list() == []


def test_a_stored_schedule_that_has_ended_may_be_stored_again(app: Windlass, sync: Any, clock: VirtualClock):
    """J9.3: the same line of code runs at every start, also after the end."""
    end = clock.now() + timedelta(hours=1)
    app.schedule("sync", every(minutes=20), sync.bind("eu"), end=end)
    clock.advance(2 * HOUR)
    assert tick(app) == 3
    app.schedule("sync", every(minutes=20), sync.bind("eu"), end=end)
    assert [one.state for one in app.schedules.list()] == ["ended"]


def test_the_clock_of_a_machine_does_not_decide_whether_a_schedule_has_ended(
    pg_url: str, monkeypatch: pytest.MonkeyPatch
):
    """J9.2: only the store's clock counts; this machine's is a day ahead."""
    present = from_micros(SystemClock().micros())
    monkeypatch.setattr(SystemClock, "now", lambda _: present + timedelta(days=1))
    app = Windlass(pg_url)
    app.migrate()
    app.schedule("sync", every(hours=1), app.job(bodies.sync).bind("eu"), end=present + timedelta(hours=12))
    assert [one.state for one in app.schedules.list()] == ["active"]
    app.close()


def test_without_a_schema_nothing_is_stored(pg_url: str, caplog: pytest.LogCaptureFixture):
    """J9.4: `windlass migrate shop:app` imports the module that calls app.schedule."""
    app = Windlass(pg_url)
    sync = app.job(bodies.sync)
    app.schedule("sync", every(hours=1), sync.bind("eu"))
    assert "schedule sync is not stored" in caplog.text
    app.migrate()
    app.schedule("sync", every(hours=1), sync.bind("eu"))
    assert [one.key for one in app.schedules.list()] == ["sync"]
    app.close()
