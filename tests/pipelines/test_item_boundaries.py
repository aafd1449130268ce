"""Items that run side by side: how many, and what happens when their claim ends at a boundary."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tests.support.waiting import until
from windlass import ExecutionStatus, JobContext, Windlass
from windlass.pipelines.node_runtime import NodeRuntime

RUN = 60.0


@pytest.fixture
def app() -> Iterator[Windlass]:
    application = Windlass("sqlite:///:memory:")
    yield application
    application.close()


@pytest.mark.parametrize("limit", [0, 5])
def test_a_pause_during_an_item_expansion_lets_the_other_items_finish_their_step(app: Windlass, limit: int):
    """P2.2, P4.1: a pause is no failure: the item beside the expansion is neither canceled, retried nor rejected."""
    shop = app.pipeline("shop", retry_limit=limit, retry_wait=0, recover_on_failure=True)
    attempts: list[int] = []

    @shop.expand
    def both(number: int) -> Iterator[int | str]:
        yield number
        yield "slow"

    @shop.expand(buffer=1)
    async def many(number: int) -> AsyncIterator[int]:
        for each in range(number):
            await asyncio.sleep(0.01)
            yield each

    @shop.step
    async def slow(text: str, ctx: JobContext) -> str:
        attempts.append(ctx.attempt)
        await asyncio.sleep(0.7)
        return f"{text}!"

    with app.worker():
        run = shop.submit(100)
        until(lambda: bool(attempts), "the slow step runs")
        assert run.pause()
        until(lambda: app.executions.get(run.id).lease_until is None, "the claim has ended")
        assert run.status() is ExecutionStatus.PAUSED
        assert run.resume()
        assert run.result(RUN) == [*range(100), "slow!"]
    assert attempts == [1]
    assert app.executions.get(run.id).rejected == 0


@pytest.mark.parametrize(("limit", "most"), [(1, 1), (4, 4), (8, 8), (128, 8)])
def test_a_few_items_run_as_many_at_a_time_as_their_step_allows(app: Windlass, limit: int, most: int):
    """P1.3: also those for which no parts are made."""
    shop = app.pipeline("shop", concurrency=limit)
    running: set[int] = set()
    counts: list[int] = []

    @shop.expand
    def numbers(count: int) -> Iterator[int]:
        yield from range(count)

    @shop.step
    async def slow(number: int) -> int:
        running.add(number)
        await asyncio.sleep(0.2)
        counts.append(len(running))
        running.remove(number)
        return number

    with app.worker():
        assert shop.submit(8).result(RUN) == list(range(8))
    assert max(counts) == most


def test_chunks_that_a_thread_stores_wake_nodes_on_the_loop(app: Windlass, monkeypatch: pytest.MonkeyPatch):
    """P2.3: a wakeup makes tasks, which only the thread of the loop may do."""
    shop = app.pipeline("shop", buffer=2)
    bodies: set[int] = set()
    announcing: list[int] = []
    announce = NodeRuntime._announce

    def recorded(self: NodeRuntime, *given: Any) -> None:
        announcing.append(threading.get_ident())
        announce(self, *given)

    monkeypatch.setattr(NodeRuntime, "_announce", recorded)

    @shop.expand
    def numbers(count: int) -> Iterator[int]:
        bodies.add(threading.get_ident())
        yield from range(count)

    @shop.step
    async def double(number: int) -> int:
        return number * 2

    with app.worker():
        assert shop.submit(9).result(RUN) == list(range(0, 18, 2))
    assert len(announcing) > 4
    assert not bodies & set(announcing)
