"""`@app.recurring`: what can be declared, what is refused where it is written, and that nothing is stored before."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.recurring import recurring_bodies as bodies
from tests.recurring import recurring_shop
from tests.recurring.recurring_bodies import RAN
from windlass import (
    ConfigurationError,
    InvalidOptionError,
    Misfire,
    Overlap,
    SerializationError,
    StoreUnavailableError,
    Windlass,
    every,
)
from windlass.domain.clock import VirtualClock
from windlass.testing import advance, drain, isolated, tick

HOUR = 3600


def test_methods_recur():
    """J9.4: instance, static and class methods."""
    with isolated(recurring_shop.app) as app:
        advance(app, HOUR)
        assert tick(app) == 3
        assert drain(app).succeeded == 3
        assert sorted(RAN) == ["counted", "shop cleaned", "shop opened"]


def test_functions_recur(app: Windlass, clock: VirtualClock):
    """J9.4: with options of jobs; above @app.job, whose options are kept."""
    app.recurring("0 * * * *", max_retries=5)(bodies.beat)
    app.recurring(every(hours=1))(app.job(queue="night")(bodies.with_default))
    clock.advance(HOUR)
    assert tick(app) == 2
    assert drain(app).succeeded == 2
    assert sorted(RAN) == ["beat", "eu"]
    found = {one.key: one for one in app.schedules.list()}
    assert sorted(found) == [f"{bodies.__name__}:{name}" for name in ("beat", "with_default")]
    (job,) = app.find(target=f"{bodies.__name__}:beat")
    assert (job.max_retries, job.due_at) == (5, clock.now())
    assert [job.queue for job in app.find(target=f"{bodies.__name__}:with_default")] == ["night"]


def test_the_declaration_of_a_schedule_is_shown(app: Windlass, clock: VirtualClock):
    """J9.4: times are aware, and the cron expression is as it was written."""
    app.recurring("0 0 2 * * ?", zone="Europe/Berlin", key="nightly", misfire=Misfire.FIRE_ONCE, overlap=Overlap.SKIP)(
        bodies.beat
    )
    assert tick(app) == 0
    (schedule,) = app.schedules.list()
    assert (schedule.key, schedule.cron, schedule.zone) == ("nightly", "0 0 2 * * ?", "Europe/Berlin")
    assert (schedule.misfire, schedule.overlap) == (Misfire.FIRE_ONCE, Overlap.SKIP)
    assert (schedule.state, schedule.paused, schedule.skipped, schedule.last_at) == ("active", False, 0, None)
    assert schedule.next_at == datetime(2030, 1, 1, 1, tzinfo=UTC)
    assert schedule.target == f"{bodies.__name__}:beat"


def test_declaring_touches_no_store():
    """J9.4: a module that declares schedules can be imported anywhere."""
    app = Windlass("postgresql://nobody@localhost:1/none")
    app.recurring("0 2 * * *")(bodies.beat)
    with pytest.raises(StoreUnavailableError):
        app.schedules.list()
    app.close()


BAD_TIMES: list[tuple[dict[str, Any], str]] = [
    ({"cron": "61 * * * *"}, "minute"),
    ({"cron": "0 0 31 2 *"}, "never"),
    ({"cron": 60}, "cron expression"),
    ({"cron": "every(0)"}, "every"),
    ({"zone": "Europe/Berlln"}, "did you mean"),
    ({"misfire": "never"}, "Misfire.CATCH_UP"),
    ({"overlap": 3}, "Overlap.QUEUE"),
    ({"jitter": -1}, "jitter"),
    ({"start": datetime(2030, 1, 1)}, "time zone"),  # noqa: DTZ001 - that is what is refused
    ({"start": "tomorrow"}, "aware datetime"),
    ({"start": datetime(2030, 1, 2, tzinfo=UTC), "end": datetime(2030, 1, 1, tzinfo=UTC)}, "before its start"),
    ({"catch_up": 0}, "catch_up"),
    ({"key": ""}, "key"),
    ({"idempotency_key": "x"}, "duplicate of the first"),
    ({"business_key": "x"}, "schedule's key is one already"),
    ({"delay": 5}, "jitter="),
    ({"run_at": datetime(2031, 1, 1, tzinfo=UTC)}, "start="),
    ({"expires": datetime(2031, 1, 1, tzinfo=UTC)}, "seconds after"),
    ({"max_retrys": 5}, "max_retries"),
]


@pytest.mark.parametrize(("options", "said"), BAD_TIMES, ids=[next(iter(options)) for options, _ in BAD_TIMES])
def test_an_invalid_schedule_is_refused_where_it_is_declared(options: dict[str, Any], said: str):
    """J9.1, J9.4: at decoration, naming the field or option."""
    app = Windlass("sqlite://")
    given = {"cron": "0 2 * * *", **options}
    with pytest.raises(InvalidOptionError, match=said):
        app.recurring(given.pop("cron"), **given)(bodies.beat)
    app.close()


def test_required_parameters_are_refused_at_decoration():
    """J9.4: a tick has no arguments to give; self, defaults and the context are none."""
    app = Windlass("sqlite://")
    with pytest.raises(InvalidOptionError, match="needs order, and a tick has no arguments"):
        app.recurring("0 2 * * *")(bodies.needs)
    with pytest.raises(InvalidOptionError, match="needs where, and a tick has no arguments"):

        class _Shop:
            @app.recurring("0 2 * * *")
            def ship(self, where: str, how: str = "fast") -> None:
                raise AssertionError(f"{where} {how}")

    app.close()


def test_options_of_the_job_below_are_refused_too():
    """J9.4: wherever they are written."""
    app = Windlass("sqlite://")
    with pytest.raises(InvalidOptionError, match="business_key"):
        app.recurring("0 2 * * *")(app.job(business_key="x")(bodies.beat))
    app.close()


def test_a_key_is_declared_once():
    """J9.4: two schedules of one function need a key each; a module that is loaded again replaces its own."""
    app = Windlass("sqlite://")
    job = app.recurring("0 2 * * *")(bodies.beat)
    with pytest.raises(ConfigurationError, match="declared twice"):
        app.recurring("0 3 * * *")(job)
    app.recurring("0 3 * * *", key="second")(job)
    with pytest.raises(ConfigurationError, match="declared twice"):
        app.recurring("0 3 * * *", key="second")(bodies.with_default)
    app.close()


def test_a_local_function_is_refused_at_decoration():
    """J1.1: no other process could find it."""
    app = Windlass("sqlite://")
    with pytest.raises(SerializationError, match="local"):
        app.recurring("0 2 * * *")(lambda: None)
    app.close()


def test_a_schedule_whose_end_has_passed_is_only_logged(app: Windlass, caplog: pytest.LogCaptureFixture):
    """J9.3: a deploy must not fail because time went by."""
    app.recurring("0 * * * *", end=datetime(2020, 1, 1, tzinfo=UTC))(bodies.beat)
    advance(app, timedelta(hours=3))
    assert tick(app) == 0
    assert [one.state for one in app.schedules.list()] == ["ended"]
    assert "has no tick any more" in caplog.text
