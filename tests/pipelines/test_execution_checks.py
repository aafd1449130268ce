"""The checks of executions: those that wait for nothing are woken."""

import logging
from collections.abc import Iterable, Iterator

import pytest

from tests.support.facts import one, rows
from tests.support.pipeline_invariants import broken_rules, check_executions
from windlass import NodeSettings, Settings, Windlass
from windlass.domain.identity import FIRST_ID
from windlass.pipelines.pipeline import AppPipeline
from windlass.stores.plans import execution_checks

RUN = 60.0
LINES = 30
PARKED = "UPDATE windlass_hot SET due = NULL"
LEFT = "they continue now; report this"


@pytest.fixture
def app(store_url: str) -> Iterator[Windlass]:
    application = Windlass(store_url, settings=Settings(node=NodeSettings(sweep_interval=0.05)))
    application.migrate()
    yield application
    application.close()


def declare(app: Windlass) -> AppPipeline:
    shop = app.pipeline("shop", version="1", buffer=10)

    @shop.expand
    def lines(number: int) -> Iterator[int]:
        yield from range(number)

    @shop.step
    async def price(line: int) -> int:
        return line

    @shop.reduce
    def total(prices: Iterable[int]) -> int:
        return sum(prices)

    return shop


def test_an_execution_that_waits_for_nothing_is_woken(app: Windlass, store_url: str, caplog: pytest.LogCaptureFixture):
    """P2.3: parked without parts, as by a wakeup that was lost."""
    run = declare(app).submit(LINES)
    rows(store_url, PARKED)
    assert "V5 an open execution waits for something" in broken_rules(store_url)
    with caplog.at_level(logging.ERROR), app.worker():
        assert run.result(RUN) == sum(range(LINES))
    assert LEFT in caplog.text
    check_executions(store_url)


def test_a_part_whose_job_is_missing_gets_another(app: Windlass, store_url: str, caplog: pytest.LogCaptureFixture):
    """P2.3: its items are run, and the execution ends with all of them."""
    run = declare(app).submit(LINES)
    execution = one(store_url, "SELECT id FROM windlass_execution")
    rows(
        store_url,
        f"""INSERT INTO windlass_part (execution_id, stage, segment, lo, hi, job_id)
        VALUES ('{execution}', 1, 1, '10', '11', '01a1eea1-5744-7730-9b16-232adac9a798')""",
    )
    rows(store_url, PARKED)
    assert "V5 parts have live jobs" in broken_rules(store_url)
    with caplog.at_level(logging.ERROR), app.worker():
        assert run.result(RUN) == sum(range(LINES))
    assert LEFT in caplog.text
    check_executions(store_url)


def test_paused_executions_and_those_that_wait_for_parts_are_not_woken(app: Windlass, store_url: str):
    """P2.2: nothing is found where something is waited for."""
    run = declare(app).submit(LINES)
    assert run.pause()
    rows(store_url, PARKED)
    checked = app.database.run(execution_checks.wake_idle, FIRST_ID)
    assert (checked.found, checked.effects.work) == (0, frozenset())
    assert run.resume()
    assert one(store_url, "SELECT count(*) FROM windlass_hot WHERE due IS NULL") == 0
    with app.worker():
        assert run.result(RUN) == sum(range(LINES))


def test_windows_follow_each_other(app: Windlass, store_url: str, monkeypatch: pytest.MonkeyPatch):
    """P2.3: a pass looks at a few, and the next one goes on behind them."""
    monkeypatch.setattr(execution_checks, "WINDOW", 2)
    shop = declare(app)
    shop.submit_many(range(5))
    rows(store_url, PARKED)
    found, after, passes = 0, FIRST_ID, 0
    while passes == 0 or after != FIRST_ID:
        checked = app.database.run(execution_checks.wake_idle, after)
        found, after, passes = found + checked.found, checked.next_after, passes + 1
    assert (found, passes) == (5, 2)
