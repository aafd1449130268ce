"""Batches of calls on one loop."""

import asyncio
from collections.abc import Sequence

import pytest

from windlass.runtime.batcher import Batcher


async def test_calls_that_come_together_share_a_batch_and_get_their_own_answers():
    batches: list[list[int]] = []

    async def run(given: Sequence[int]) -> list[int]:
        batches.append(list(given))
        await asyncio.sleep(0)
        return [number * 10 for number in given]

    batcher = Batcher[int, int](run, most=3)
    assert await asyncio.gather(*map(batcher.call, range(7))) == [number * 10 for number in range(7)]
    assert batches == [[0, 1, 2], [3, 4, 5], [6]]


async def test_an_error_is_raised_by_every_call_of_its_batch_and_no_other():
    async def run(given: Sequence[int]) -> list[int]:
        if 0 in given:
            raise ConnectionError("away")
        return list(given)

    batcher = Batcher[int, int](run, most=2)
    answers = await asyncio.gather(*map(batcher.call, range(4)), return_exceptions=True)
    assert [type(answer) for answer in answers[:2]] == [ConnectionError, ConnectionError]
    assert answers[2:] == [2, 3]


async def test_a_cancelled_call_does_not_affect_the_others():
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def run(given: Sequence[int]) -> list[int]:
        begun.set()
        await go_on.wait()
        return list(given)

    batcher = Batcher[int, int](run, most=10)
    first, second = (asyncio.ensure_future(batcher.call(number)) for number in (1, 2))
    await begun.wait()
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    go_on.set()
    assert await second == 2
