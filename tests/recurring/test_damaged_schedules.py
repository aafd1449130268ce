"""A damaged row of a schedule is set aside alone: the others fire, and all are listed."""

from contextlib import suppress
from typing import Any

import pytest

from tests.engine.apps import Apps
from tests.recurring import recurring_bodies as bodies
from tests.recurring.recurring_bodies import RAN
from windlass import Misfire, Windlass, WindlassError, every
from windlass.domain.clock import VirtualClock
from windlass.stores.plan import Step
from windlass.stores.plans import ticks
from windlass.testing import drain

MINUTE = 60
LATE = 10_000_000
MOST = 2**63 - 1

DAMAGE = [
    *("cron = 'garbage'", "cron = 'every(seconds=0)'", "zone = ''", "misfire = 'NONE'", "call = 'garbage'"),
    *(f"starts = {MOST}", f"anchor = {-MOST}", f"next_at = {-MOST}", f"jitter_us = {MOST}", f"skipped = {MOST}"),
    "catch_up = 2147483647",
    "call = replace(call, 'default', 'de\\u0000fault')",
    "call = replace(call, 'recurring_bodies', 'recurring\\u0000bodies')",
]
TEXT_FOR_NUMBERS = [f"{column} = 'x'" for column in ("anchor", "starts", "ends", "jitter_us", "skipped", "last_at")]
"""What SQLite takes in a column of numbers."""


@pytest.mark.parametrize("damage", [*DAMAGE, *TEXT_FOR_NUMBERS, "id = 'x'"])
def test_a_damaged_schedule_holds_up_no_other_one(apps: Apps, clock: VirtualClock, damage: str):
    """J7.9: neither its ticks, nor the list, nor what steers them."""
    if damage not in DAMAGE and not apps.url.startswith("sqlite"):
        pytest.skip("PostgreSQL takes no text in these columns")
    app = apps(clock=clock)
    sync = app.job(bodies.sync)
    for key in ("bad", "good"):
        app.schedule(key, every(minutes=1), sync.bind(key), misfire=Misfire.FIRE_ONCE)
    app.database.run(_damage, damage)
    clock.advance(3 * MINUTE)
    fired = app.database.run(ticks.fire, (), LATE)
    assert [one.key for one in fired.unplannable] == ["bad"]
    drain(app)
    assert RAN == ["good"]
    assert [(one.key, one.skipped) for one in app.schedules.list()][1:] == [("good", 2)]
    _steer(app, "good")
    with suppress(WindlassError):  # some damage is undone by a pause
        _steer(app, "bad")
    assert app.schedules.remove("bad")


def _steer(app: Windlass, key: str) -> None:
    assert app.schedules.pause(key)
    assert app.schedules.resume(key)
    assert app.schedules.trigger(key) is not None


def _damage(dialect: Any, damage: str) -> Any:
    del dialect
    yield Step("script", {"text": f"UPDATE windlass_schedule SET {damage} WHERE key = 'bad'"})
