"""Workers fire schedules: at their ticks, woken by changes, at a cost that does not depend on how many there are."""

from typing import Any

import pytest

from tests.engine.apps import LONG, Apps, until
from tests.recurring import recurring_bodies as bodies
from tests.recurring.recurring_bodies import RAN
from tests.stores.recording import recorded, statements
from windlass import Misfire, Overlap, RecurringSettings, ScheduleSkipped, Settings, Windlass, every
from windlass.domain.clock import VirtualClock
from windlass.domain.cron import Cron
from windlass.recurring import ticker
from windlass.stores.plan import Step
from windlass.stores.plans import schedules, ticks
from windlass.testing import drain, tick
from windlass.testing.contract.schedule_setup import declaration

MINUTE = 60


def test_a_worker_fires_what_it_declares_and_what_is_stored_while_it_runs(apps: Apps):
    """J9.2, J9.4: it sleeps to the next tick, and a schedule stored in its process wakes it."""
    app = apps()
    app.recurring(every(seconds=1))(bodies.beat)
    sync = app.job(bodies.sync)
    with app.worker():
        until(lambda: "beat" in RAN)
        app.schedule("sync", every(seconds=1), sync.bind("eu"))
        until(lambda: "eu" in RAN)
        assert app.schedules.pause("sync")
        handle = app.schedules.trigger("sync")
        assert handle is not None
        assert handle.result(timeout=LONG) == "eu"


def test_a_schedule_stored_by_another_process_wakes_a_node(apps: Apps, monkeypatch: pytest.MonkeyPatch):
    """J9.2: on PostgreSQL it is notified; else it is seen with the next look at the store."""
    node, client = apps(), apps()
    sync = client.job(bodies.sync)
    node.job(bodies.sync)
    if not node.database.notifies:
        monkeypatch.setattr(ticker, "LONGEST_SLEEP", 0.2)
    else:
        monkeypatch.setattr(ticker, "LONGEST_SLEEP", LONG * 2)
    with node.worker():
        client.schedule("sync", every(seconds=1), sync.bind("eu"))
        until(lambda: "eu" in RAN)


def test_skipped_ticks_are_counted_logged_and_published(
    app: Windlass, clock: VirtualClock, caplog: pytest.LogCaptureFixture
):
    """J9.3, J5.8: missed ticks with the first of them, overlapping ones each."""
    events: list[ScheduleSkipped] = []
    app.on(ScheduleSkipped)(events.append)
    app.recurring(every(minutes=1), key="missed", misfire=Misfire.FIRE_ONCE)(bodies.beat)
    app.recurring(every(minutes=1), key="overlap", overlap=Overlap.SKIP)(app.job(bodies.with_default))
    clock.advance(3 * MINUTE)
    start = clock.now().timestamp() - 3 * MINUTE
    assert tick(app) == 2
    until(lambda: len(events) == 3)
    assert sorted((one.key, one.tick.timestamp() - start, one.why, one.count) for one in events) == [
        ("missed", 2 * MINUTE, "missed", 2),
        ("overlap", 2 * MINUTE, "overlap", 1),
        ("overlap", 3 * MINUTE, "overlap", 1),
    ]
    assert [one.skipped for one in app.schedules.list()] == [2, 2]
    assert caplog.text.count("did not fire") == 3


def test_a_tick_is_missed_after_the_time_that_is_set(apps: Apps, clock: VirtualClock):
    """J9.3: the setting recurring.misfire_after."""
    app = apps(clock=clock, settings=Settings(recurring=RecurringSettings(misfire_after=100)))
    app.recurring(every(hours=1), misfire=Misfire.SKIP)(bodies.beat)
    clock.advance(3600 + 90)
    assert tick(app) == 1
    clock.advance(3600 + 20)
    assert tick(app) == 0


def test_a_schedule_that_cannot_be_planned_is_logged_once_and_skipped(apps: Apps, caplog: pytest.LogCaptureFixture):
    """J9.2: and holds up no other one."""
    app = apps()
    sync = app.job(bodies.sync)
    app.schedule("broken", every(seconds=1), sync.bind("no"))
    app.schedule("sync", every(seconds=1), sync.bind("eu"))
    app.database.run(_damage, "broken")
    with app.worker():
        until(lambda: RAN.count("eu") >= 2)
    assert "no" not in RAN
    assert caplog.text.count("schedule broken cannot be planned here") == 1


def _damage(dialect: Any, key: str) -> Any:
    del dialect
    text = f"UPDATE windlass_schedule SET zone = 'Mars/Olympus' WHERE key = '{key}'"
    yield Step("script", {"text": text})


def test_firing_takes_as_many_statements_for_200_schedules_as_for_one(app: Windlass, clock: VirtualClock):
    """J9.2: and the look at the next tick is one, however many schedules there are."""
    sync = app.job(bodies.sync)
    counts = []
    for number in (1, 200):
        for index in range(number):
            app.schedule(f"s{number}:{index}", every(minutes=1), sync.bind("eu"), overlap=Overlap.SKIP)
        clock.advance(MINUTE)
        steps: list[Step] = []
        fired = app.database.run(recorded(steps, ticks.fire), (), 0, {"default"})
        assert fired.runs == number
        counts.append(statements(steps))
        drain(app)
        for index in range(number):
            app.schedules.remove(f"s{number}:{index}")
    assert max(counts) <= 7, "two more where many rows are copied, none for each schedule"
    look: list[Step] = []
    app.database.read(recorded(look, ticks.next_tick), ())
    assert (statements(look), look[0].alone) == (1, True)


def test_counting_what_200_schedules_missed_takes_no_long_transaction(
    app: Windlass, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
):
    """J9.3: 1,000 are counted of one schedule, 10,000 of all that fire at once: one takes 20 µs, under row locks."""
    app.database.run(schedules.store, [declaration(f"s{number}", "* * * * *") for number in range(200)], None)
    clock.advance(24 * 60 * MINUTE)
    planned: list[int] = []
    plan = Cron.next_after

    def counted(cron: Cron, instant: int, zone: str) -> int | None:
        planned.append(instant)
        return plan(cron, instant, zone)

    monkeypatch.setattr(Cron, "next_after", counted)
    fired = app.database.run(ticks.fire, (), 0)
    assert (fired.advanced, fired.runs) == (200, 200 * 11)
    assert {one.skipped for one in app.schedules.list()} == {50}
    assert len(planned) < 200 * 100


def test_a_worker_without_schedules_queries_once_in_five_seconds(apps: Apps, monkeypatch: pytest.MonkeyPatch):
    """J9.2: what an application does not use costs it nothing but this look."""
    app = apps()
    app.job(bodies.sync)
    seen: list[Step] = []
    monkeypatch.setattr(ticks, "next_tick", recorded(seen, ticks.next_tick))
    with app.worker() as worker:
        assert worker.node is not None
        (service,) = [one for one in worker.node.membership.services if one.name == "ticker"]
        until(lambda: seen)
        service.signals.ticked.arm()
        service.wake()
        assert service.signals.ticked.wait_sync(LONG) == ticker.LONGEST_SLEEP
    assert {step.name for step in seen} == {"next_tick"}
