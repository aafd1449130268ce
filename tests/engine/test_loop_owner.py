"""A job that blocks the event loop is named in a warning."""

import threading

import pytest

from tests.engine import jobs
from tests.engine.apps import LONG, Apps, until
from windlass import NodeSettings, Settings

ENTERED, OPEN = threading.Event(), threading.Event()


async def block_the_loop() -> str:
    ENTERED.set()
    assert OPEN.wait(LONG)  # what a coroutine should never do
    return "blocked"


@pytest.fixture(autouse=True)
def _closed() -> None:
    ENTERED.clear()
    OPEN.clear()


def warned_from(threshold: float) -> Settings:
    return Settings(node=NodeSettings(loop_block_warning=threshold))


def test_a_job_that_blocks_the_loop_is_warned_of_by_name(apps: Apps, caplog: pytest.LogCaptureFixture):
    """J10: with how long, by which job, and where."""
    app = apps(settings=warned_from(0.05), allow=["tests.engine"])
    with app.worker() as worker:
        assert worker.node is not None
        watch = worker.node.loop_watch
        assert watch is not None
        handle = app.bind(block_the_loop).enqueue()
        assert ENTERED.wait(LONG)
        until(lambda: watch.blocks.noticed)
        OPEN.set()
        assert handle.result(timeout=LONG) == "blocked"
        until(lambda: "event loop blocked" in caplog.text)
    (record,) = [record for record in caplog.records if record.name == "windlass.loop"]
    said = record.getMessage()
    assert f"by tests.engine.test_loop_owner:block_the_loop (job {handle.id})" in said
    assert "threading.py" in said, "where it stood"


def test_the_watch_can_be_turned_off(apps: Apps):
    """J10: node.loop_block_warning = 0."""
    app = apps(settings=warned_from(0), allow=["tests.engine"])
    with app.worker() as worker:
        assert worker.node is not None
        assert worker.node.loop_watch is None
        assert app.bind(jobs.add, 1, 2).enqueue().result(timeout=LONG) == 3


def test_an_idle_loop_is_not_pinged(apps: Apps):
    """J10: no cost where nothing can block it."""
    app = apps(settings=warned_from(0.01), allow=["tests.engine"])
    with app.worker() as worker:
        assert worker.node is not None
        watch = worker.node.loop_watch
        assert watch is not None
        watch.signals.ticked.arm()
        for _ in range(3):
            watch.signals.ticked.wait_sync(LONG)
        assert not watch.blocks.waits
