"""A job that waits for another on a full worker is warned of."""

import logging

import pytest

from tests.engine.apps import LONG, Apps, until
from tests.engine.fixtures import _nothing_seen, apps, empty_postgres, migrated_postgres
from windlass import JobContext, Windlass
from windlass.client import waits

__all__ = ["_nothing_seen", "apps", "empty_postgres", "migrated_postgres"]  # fixtures

APPS: list[Windlass] = []


def child() -> str:
    return "done"


def parent() -> list[str]:
    handle = APPS[0].bind(child).enqueue()
    for _ in range(2):
        try:
            handle.result(timeout=0.05)
        except TimeoutError:
            continue
    return [str(JobContext.current().job_id), str(handle.id)]


async def aparent() -> list[str]:
    handle = await APPS[0].bind(child).aenqueue()
    for _ in range(2):
        try:
            await handle.aresult(timeout=0.05)
        except TimeoutError:
            continue
    return [str(JobContext.current().job_id), str(handle.id)]


def waiting(handle_id: str) -> None:
    APPS[0].handle(handle_id).result()


@pytest.fixture
def app(apps: Apps) -> Windlass:
    made = apps(allow=["tests.client"])
    APPS[:] = [made]
    return made


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "waits for job" in record.getMessage()]


@pytest.mark.parametrize("body", [parent, aparent])
def test_a_job_that_waits_for_a_job_on_a_full_worker_is_warned_of_once(
    app: Windlass, caplog: pytest.LogCaptureFixture, body
):
    """J10: both are named; Windlass cannot know whether another worker will run it."""
    with caplog.at_level(logging.WARNING, "windlass.job"), app.worker(concurrency=1):
        first, second = app.bind(body).enqueue().result(timeout=LONG)
    (said,) = warnings(caplog)
    assert f"job {first} (tests.client.test_waits:{body.__name__}) waits for job {second}" in said
    assert "all 1 slots" in said


def test_a_job_that_waits_on_a_worker_with_room_is_not_warned_of(app: Windlass, caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.WARNING, "windlass.job"), app.worker(concurrency=3):
        app.bind(parent).enqueue().result(timeout=LONG)
    assert warnings(caplog) == []


def test_a_worker_that_fills_up_later_is_noticed(
    app: Windlass, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    """J10: two jobs with one slot each to begin with; each waits for a third."""
    monkeypatch.setattr(waits, "SECOND_LOOK", 0.05)
    third = app.bind(child).using(delay=3600).enqueue()
    with caplog.at_level(logging.WARNING, "windlass.job"), app.worker(concurrency=2, drain_timeout=0):
        for _ in range(2):
            app.bind(waiting, str(third.id)).enqueue()
        until(lambda: len(warnings(caplog)) == 2)
        assert third.cancel()
