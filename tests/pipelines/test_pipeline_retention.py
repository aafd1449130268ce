"""Retention of executions and rejects, on every store."""

from collections.abc import Iterator

import pytest

from tests.support.facts import rows
from windlass import ExecutionNotFoundError, ExecutionStatus, RejectItem, Windlass
from windlass.stores.plans import execution_retention, rejects
from windlass.stores.plans.dead_letters import FIRST

RUN = 60.0
TABLES = ("windlass_execution", "windlass_transition", "windlass_item", "windlass_part")


@pytest.fixture
def app(store_url: str) -> Iterator[Windlass]:
    application = Windlass(store_url)
    application.migrate()
    yield application
    application.close()


def count(app: Windlass, table: str) -> int:
    return int(rows(app.url, f"SELECT count(*) FROM {table}")[0][0])


@pytest.mark.parametrize("most", [5, 5_000])
def test_ended_executions_are_deleted_with_all_their_rows(app: Windlass, monkeypatch: pytest.MonkeyPatch, most: int):
    """P2.1, P3.1: items and logs in batches; those that are open, or are dead letters, stay."""
    monkeypatch.setattr(execution_retention, "MOST_ROWS", most)
    shop = app.pipeline("shop", version="1", retry_limit=0)

    @shop.expand
    def lines(number: int) -> Iterator[int]:
        if number < 0:
            raise ValueError("no")
        yield from range(number)

    @shop.step
    def check(number: int) -> int:
        if number == 1:
            raise RejectItem("no")
        return number

    with app.worker():
        done = shop.submit(20)
        done.result(RUN)
        failed = shop.submit(-1)
        assert failed.join(RUN) is ExecutionStatus.DLQ
    opened = shop.submit(3)
    after: tuple[int, str] | None = FIRST
    deleted = 0
    while after is not None:
        gone, after = app.database.run(execution_retention.purge, 0, 100, after)
        deleted += gone
    assert deleted == 1
    with pytest.raises(ExecutionNotFoundError):
        app.executions.get(done.id)
    assert app.executions.get(failed.id).status is ExecutionStatus.DLQ
    assert app.executions.get(opened.id).status is ExecutionStatus.QUEUED
    assert [count(app, table) for table in TABLES] == [2, 3, 0, 0]
    assert len(app.rejects.find()) == 1, "rejects have a retention of their own"


def test_old_rejects_are_deleted_in_batches(app: Windlass):
    """P5.3: after their own retention."""
    shop = app.pipeline("shop", version="1")

    @shop.expand
    def lines(number: int) -> Iterator[int]:
        yield from range(number)

    @shop.step
    def check(number: int) -> int:
        raise RejectItem("no")

    with app.worker():
        shop.submit(5).result(RUN)
    gone, after = app.database.run(rejects.purge, 3_600_000_000, 2, FIRST)
    assert (gone, after) == (0, None)
    batches = []
    after = FIRST
    while after is not None:
        gone, after = app.database.run(rejects.purge, 0, 2, after)
        batches.append(gone)
    assert batches == [2, 2, 1]
    assert app.rejects.find().items == []
