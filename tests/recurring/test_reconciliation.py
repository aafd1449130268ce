"""Declared schedules are stored when a worker starts, in place, and retired by one node when they are not any more."""

from typing import Any

import pytest

from tests.engine.apps import LONG, Apps, until
from tests.recurring import recurring_bodies as bodies
from tests.stores.recording import recorded
from windlass import NodeSettings, Overlap, RecurringSettings, Settings, Windlass, every
from windlass.recurring import reconciliation, upkeep_duty
from windlass.recurring.declared_schedules import DeclaredSchedules
from windlass.stores.plan import Step
from windlass.stores.plans import schedules

QUICK = Settings(
    recurring=RecurringSettings(retire_after=0), node=NodeSettings(heartbeat_interval=0.5, missed_heartbeats=3)
)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passes of the duty come at once, and each application has the name that the test gives it."""
    monkeypatch.setattr(upkeep_duty, "INTERVAL", 0.05)
    monkeypatch.setattr("windlass.recurring.schedule_feature.INTERVAL", 0.05)
    monkeypatch.setattr(DeclaredSchedules, "origin", property(lambda self: getattr(self._app, "origin_of_test", "")))


def named(apps: Apps, name: str, *keys: str, **options: Any) -> Windlass:
    """An application of this name that declares these keys."""
    app = apps(settings=QUICK)
    app.origin_of_test = name  # type: ignore[attr-defined]
    for key in keys:
        app.recurring(every(hours=1), key=key, **options)(app.job(name=f"{name}.{key}")(bodies.beat))
    app.job(bodies.sync)
    return app


def keys_of(app: Windlass) -> list[str]:
    return [schedule.key for schedule in app.schedules.list()]


def test_a_worker_stores_what_its_application_declares(apps: Apps):
    """J9.4: before it claims; a second one of the same version writes nothing."""
    app = named(apps, "shop:app", "a", "b")
    assert keys_of(app) == []
    with app.worker():
        assert keys_of(app) == ["a", "b"]
    before = app.schedules.list()
    with named(apps, "shop:app", "a", "b").worker():
        assert app.schedules.list() == before


def test_a_deploy_keeps_pause_and_phase(apps: Apps):
    """J9.4: of schedules that have changed, too."""
    with named(apps, "shop:app", "a", "b").worker() as _:
        pass
    app = apps()
    app.schedules.pause("a")
    before = {one.key: one for one in app.schedules.list()}
    with named(apps, "shop:app", "a", "b", overlap=Overlap.SKIP).worker():
        after = {one.key: one for one in app.schedules.list()}
    assert (after["a"].paused, after["a"].overlap) == (True, Overlap.SKIP)
    assert after["b"].next_at == before["b"].next_at


def test_a_schedule_that_is_no_longer_declared_is_retired_and_a_rollback_restores_it(apps: Apps):
    """J9.4: by one node; those of other applications and of app.schedule stay."""
    others = named(apps, "mail:app", "theirs")
    with others.worker():
        others.schedule("imperative", every(hours=1), others.job(bodies.sync).bind("eu"))
    with named(apps, "shop:app", "a", "b").worker():
        pass
    app = apps()
    app.schedules.pause("b")
    with named(apps, "shop:app", "a").worker():
        until(lambda: "b" not in keys_of(app))
        assert keys_of(app) == ["a", "imperative", "theirs"]
    with named(apps, "shop:app", "a", "b").worker():
        assert {one.key: one.paused for one in app.schedules.list()}["b"] is True


def test_nodes_of_the_old_version_keep_their_schedules(apps: Apps):
    """J9.4: in a rolling deploy, until the last of them has left."""
    old, new = named(apps, "shop:app", "a", "b"), named(apps, "shop:app", "a")
    with new.worker() as worker:
        with old.worker():
            assert worker.node is not None
            (duty,) = [one for one in worker.node.membership.duties if one.name == "upkeep of schedules"]
            for _ in range(3):
                duty.signals.ticked.wait_sync(LONG)
            assert keys_of(new) == ["a", "b"]
        until(lambda: keys_of(new) == ["a"])


def test_a_key_that_a_job_holds_does_not_keep_a_worker_from_starting(
    apps: Apps, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    """J1.5, J9.4: it is logged, and tried again."""
    monkeypatch.setattr(reconciliation, "RETRY_INTERVAL", 0.0)
    monkeypatch.setattr("windlass.recurring.ticker.LONGEST_SLEEP", 0.05)
    app = named(apps, "shop:app", "a", "b")
    held = app.job(bodies.sync).using(business_key="a", delay=3600).enqueue("eu")
    with app.worker():
        assert keys_of(app) == ["b"]
        assert caplog.text.count(f"schedule a is not stored: job {held.id} holds its key") == 1
        held.cancel()
        until(lambda: keys_of(app) == ["a", "b"])


def test_two_applications_cannot_declare_one_key(apps: Apps, caplog: pytest.LogCaptureFixture):
    """J9.4: the one that has it keeps it."""
    with named(apps, "shop:app", "a").worker():
        pass
    with named(apps, "mail:app", "a").worker():
        pass
    assert "application shop:app declares the same key" in caplog.text


def test_an_application_that_declares_nothing_stores_nothing(apps: Apps, monkeypatch: pytest.MonkeyPatch):
    """J9.4: its worker starts without a statement about schedules."""
    steps: list[Step] = []
    monkeypatch.setattr(schedules, "store", recorded(steps, schedules.store))
    with named(apps, "shop:app").worker():
        pass
    assert steps == []


def test_many_schedules_are_stored_in_bounded_transactions(apps: Apps, monkeypatch: pytest.MonkeyPatch):
    """J9.4: a few hundred each."""
    monkeypatch.setattr(schedules, "AT_ONCE", 4)
    sizes: list[int] = []
    plain = schedules.store

    def counted(dialect: Any, wanted: Any, *rest: Any) -> Any:
        sizes.append(len(wanted))
        return plain(dialect, wanted, *rest)

    monkeypatch.setattr(schedules, "store", counted)
    app = named(apps, "shop:app", *(f"s{number}" for number in range(10)))
    with app.worker():
        assert len(keys_of(app)) == 10
    assert sizes == [4, 4, 2]


def test_next_ticks_are_recomputed_by_the_zone_rules_of_the_machine(apps: Apps, caplog: pytest.LogCaptureFixture):
    """J9.1, J7.5: by the first pass of a node, which a deploy may have given new rules of time zones, and daily."""
    app = named(apps, "shop:app")
    sync = app.job(bodies.sync)
    for zone in ("Europe/Berlin", "UTC"):
        app.schedule(zone, "0 2 * * *", sync.bind("eu"), zone=zone)
    planned = {one.key: one.next_at for one in app.schedules.list()}
    app.database.run(_an_hour_later)
    with caplog.at_level("INFO"), app.worker():
        until(
            lambda: {one.key: one.next_at for one in app.schedules.list()}["Europe/Berlin"] == planned["Europe/Berlin"]
        )
        assert {one.key: one.next_at for one in app.schedules.list()}["UTC"] != planned["UTC"], "it has no rules"
    assert "recomputed the next ticks of 1 schedules" in caplog.text


def _an_hour_later(dialect: Any) -> Any:
    del dialect
    yield Step("script", {"text": "UPDATE windlass_schedule SET next_at = next_at + 3600000000"})
