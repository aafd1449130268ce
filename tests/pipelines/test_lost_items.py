"""What an execution does about parts that failed or were lost, shown on rows as a crash leaves them."""

import json
from collections.abc import Iterable, Iterator

import pytest

from tests.support.facts import one, rows
from tests.support.pipeline_invariants import check_executions
from tests.support.waiting import until
from windlass import ExecutionStatus, Windlass
from windlass.domain.ended import Effects, Ended
from windlass.domain.execution import ItemFailure
from windlass.domain.identity import new_job_id
from windlass.domain.states import Move
from windlass.pipelines import follow_ups
from windlass.pipelines.cargo import Boundary
from windlass.pipelines.execution_handle import ExecutionHandle
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan

RUN = 60.0
LINES = 30
FIRST_ITEM = "10"
SECOND_ITEM = "11"
LOST = ItemFailure("worker_lost", "lost", "WorkerLostError", step=1, path="", attempt=1)


@pytest.fixture
def app(store_url: str) -> Iterator[Windlass]:
    application = Windlass(store_url)
    application.migrate()
    yield application
    application.close()


def expanded_and_paused(app: Windlass, url: str) -> ExecutionHandle:
    """An execution whose items wait, paused, in a part without a job; its second step recovers."""
    shop = app.pipeline("shop", version="1", buffer=10)
    handles: list[ExecutionHandle] = []

    @shop.expand
    def lines(number: int) -> Iterator[int]:
        handles[0].pause()
        yield from range(number)

    @shop.step
    async def price(line: int) -> int:
        return line

    @shop.step(recover_on_failure=True)
    async def check(line: int) -> int:
        return line

    @shop.reduce
    def total(prices: Iterable[int]) -> list[int]:
        return list(prices)

    handles.append(shop.submit(9))
    run = handles[0]
    with app.worker():
        until(lambda: run.status() is ExecutionStatus.PAUSED, "the execution to pause")
        until(lambda: one(url, "SELECT count(*) FROM windlass_hot WHERE status = 'PENDING' AND due IS NULL"), "parking")
    job = one(url, "SELECT id FROM windlass_execution")
    rows(url, f"INSERT INTO windlass_part VALUES ('{job}', 1, 1, '10', '19', NULL, NULL)")
    return run


def lose(url: str, path: str) -> None:
    failing = json.dumps(LOST._replace(path=path))
    rows(url, f"UPDATE windlass_execution SET failing = '{failing}'")


def test_a_lost_item_is_judged_by_the_step_that_it_is_at(app: Windlass, store_url: str):
    """P4.4, P5.1: the first step of its part does not recover, the one that killed its process does."""
    run = expanded_and_paused(app, store_url)
    rows(store_url, f"UPDATE windlass_item SET cursor = 2 WHERE path = '{FIRST_ITEM}'")
    lose(store_url, FIRST_ITEM)
    run.resume()
    with app.worker():
        assert run.result(RUN) == list(range(1, 9))
    assert rows(store_url, "SELECT step, item FROM windlass_reject") == [(2, FIRST_ITEM)]
    check_executions(store_url)


def test_an_item_that_had_ended_when_its_part_was_lost_is_kept(app: Windlass, store_url: str):
    """P4.4: a worker may be lost after it, before the next one is noted."""
    run = expanded_and_paused(app, store_url)
    rows(store_url, f"UPDATE windlass_item SET cursor = 3, status = 2 WHERE path = '{FIRST_ITEM}'")
    lose(store_url, FIRST_ITEM)
    run.resume()
    with app.worker():
        assert run.result(RUN) == list(range(9))
    assert one(store_url, "SELECT count(*) FROM windlass_reject") == 0
    check_executions(store_url)


def test_a_failure_beside_a_recovered_one_is_not_dropped(app: Windlass, store_url: str):
    """P5.1: of two failures at once only the first is noted; the other item is tried once more."""
    run = expanded_and_paused(app, store_url)
    rows(store_url, f"UPDATE windlass_item SET cursor = 2 WHERE path = '{FIRST_ITEM}'")
    rows(store_url, f"UPDATE windlass_item SET status = 5 WHERE path = '{SECOND_ITEM}'")
    lose(store_url, FIRST_ITEM)
    run.resume()
    with app.worker():
        assert run.result(RUN) == list(range(1, 9))
    check_executions(store_url)


def ended(app: Windlass, job: Ended) -> Effects:
    """Write the follow-ups of a job, which has no row any more."""

    def end(dialect: Dialect) -> Plan[Effects]:
        (plan,) = (one.plan for one in follow_ups.follow_ups() if job.move in one.moves and one.concerns(job))
        return (yield from plan(dialect, [job]))

    return app.database.run(end)


def parked_with_a_part(app: Windlass, url: str) -> tuple[str, str]:
    """An execution that waits for one part, and the job of that."""
    shop = app.pipeline("shop", version="1")

    @shop.step
    def same(number: int) -> int:
        return number

    execution, job = str(shop.submit(1).id), new_job_id()
    rows(url, f"INSERT INTO windlass_part VALUES ('{execution}', 1, 1, '10', '11', '{job}', NULL)")
    rows(url, "UPDATE windlass_hot SET due = NULL")
    return execution, job


def test_a_part_that_ends_without_its_items_loses_its_job_and_wakes_its_execution(app: Windlass, store_url: str):
    """P2.3: it began while another part had failed, and that failure was recovered from since."""
    _, job = parked_with_a_part(app, store_url)
    effects = ended(app, Ended(job, "pipeline/shop@1#0/items", "default", 0, Move.SUCCEED))
    assert effects.work == {("default", one(store_url, "SELECT priority FROM windlass_hot"))}
    assert rows(store_url, "SELECT job_id FROM windlass_part") == [(None,)]
    assert one(store_url, "SELECT count(*) FROM windlass_hot WHERE due IS NULL") == 0


def test_an_execution_that_is_resumed_while_it_parks_continues(app: Windlass, store_url: str):
    """P2.2: also if it has parts that run."""
    execution, _ = parked_with_a_part(app, store_url)
    waits = Ended(execution, "pipeline/shop@1#0", "default", 0, Move.REQUEUE, cargo=Boundary())
    assert ended(app, waits).work == frozenset()
    assert ended(app, waits._replace(cargo=Boundary(paused=True))).work
    assert one(store_url, "SELECT count(*) FROM windlass_hot WHERE due IS NULL") == 0


def test_items_that_failed_while_their_expansion_went_on_are_run_again_by_a_redrive(app: Windlass, store_url: str):
    """P6.3: the expansion is continued, and no item is left out."""
    shop = app.pipeline("shop", version="1", buffer=10, retry_limit=0)
    works: list[bool] = []

    @shop.expand
    def lines(number: int) -> Iterator[int]:
        yield from range(10)
        if not works:
            until(lambda: one(store_url, "SELECT failing FROM windlass_execution"), "the item to fail")
        yield from range(10, number)

    @shop.step
    async def price(line: int) -> int:
        if line == 3 and not works:
            raise ValueError("no such article")
        return line

    @shop.reduce
    def total(prices: Iterable[int]) -> list[int]:
        return list(prices)

    with app.worker():
        run = shop.submit(LINES)
        assert run.join(RUN) is ExecutionStatus.DLQ
        assert one(store_url, "SELECT emitted FROM windlass_execution") == 20, "it stops after the next chunk"
        works.append(True)
        app.executions.redrive(run.id)
        assert run.result(RUN) == list(range(LINES))
    check_executions(store_url)
