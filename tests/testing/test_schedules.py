"""`tick`: schedules on the clock of a test."""

from datetime import timedelta

import pytest

from tests.recurring import recurring_bodies as bodies
from tests.recurring import recurring_shop
from tests.recurring.recurring_bodies import RAN
from windlass import ConfigurationError, Windlass, every
from windlass.testing import advance, atick, drain, inline, isolated, tick


@pytest.fixture(autouse=True)
def _nothing_ran():
    yield
    RAN.clear()


def test_drain_fires_nothing():
    """J9.4: a test that is about something else is not surprised."""
    with isolated(recurring_shop.app) as app:
        advance(app, timedelta(days=1))
        assert drain(app).total == 0
        assert app.schedules.list() == []


def test_tick_fires_what_is_due_since_the_test_began():
    """J9.4: as if a worker had started with the test's clock, whenever it is called first."""
    with isolated(recurring_shop.app) as app:
        assert tick(app) == 0
        advance(app, 2 * 3600)
        assert tick(app) == 6
        assert tick(app) == 0
        assert (drain(app).succeeded, len(RAN)) == (6, 6)


async def test_tick_has_an_async_twin():
    with isolated(recurring_shop.app) as app:
        advance(app, 3600)
        assert await atick(app) == 3


def test_inline_jobs_run_at_once():
    """J9.4: like those that are enqueued."""
    with isolated(recurring_shop.app) as app, inline(app):
        advance(app, 3600)
        assert (tick(app), len(RAN)) == (3, 3)
        assert app.schedules.trigger("clean") is not None
        assert RAN[-1] == "shop cleaned"


def test_a_worker_fires_by_itself():
    """J9.4: both at once would only confuse."""
    app = Windlass("sqlite://")
    app.job(bodies.sync)
    with app.worker(), pytest.raises(ConfigurationError, match="fires its schedules already"):
        tick(app)
    app.close()


def test_a_schedule_that_cannot_be_planned_fails_the_test():
    app = Windlass("sqlite://")
    with isolated(app):
        sync = app.job(bodies.sync)
        app.schedule("sync", every(hours=1), sync.bind("eu"))
        app.database.run(_damage)
        advance(app, 3600)
        with pytest.raises(ConfigurationError, match="schedule sync cannot be planned"):
            tick(app)
    app.close()


def _damage(dialect):
    from windlass.stores.plan import Step

    del dialect
    yield Step("script", {"text": "UPDATE windlass_schedule SET zone = 'Mars/Olympus'"})
