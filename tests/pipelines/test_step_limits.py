"""Time limits of running steps, which share one timer."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from windlass.pipelines.step_limits import ROUND, StepLimits

SHORT, LONG = 0.01, 90.0
"""Seconds."""


def run(test: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine on a loop of its own."""
    asyncio.run(asyncio.wait_for(test, LONG))


async def forever() -> None:
    """Wait until it is canceled."""
    await asyncio.Event().wait()


def test_call_that_exceeds_its_limit_is_canceled():
    """P1.3: the task goes on afterwards, as if it had not been canceled."""

    async def test() -> None:
        limits = StepLimits(asyncio.get_running_loop())
        for seconds in (SHORT, 0.0):
            with pytest.raises(TimeoutError), limits.limit(seconds) as limit:
                await forever()
            assert limit.expired
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0

    run(test())


def test_limits_expire_in_order_of_their_ends_and_not_of_their_begins():
    """A short limit that begins after a long one is not late."""

    async def test() -> None:
        limits = StepLimits(asyncio.get_running_loop())
        with limits.limit(LONG) as long:
            with pytest.raises(TimeoutError), limits.limit(SHORT):
                await forever()
            assert not long.expired

    run(test())


@pytest.mark.parametrize("seconds", [None, LONG])
def test_call_within_its_limit_is_not_canceled(seconds: float | None):
    """P1.3: and an error of the call passes."""

    async def test() -> None:
        limits = StepLimits(asyncio.get_running_loop())
        with limits.limit(seconds) as limit:
            await asyncio.sleep(0)
        with pytest.raises(TimeoutError, match="its own"), limits.limit(seconds):
            raise TimeoutError("its own")
        assert not limit.expired

    run(test())


def test_cancellation_for_another_reason_passes():
    """P1.3: of the task, also when its limit has expired at the same time."""

    async def test() -> None:
        limits = StepLimits(asyncio.get_running_loop())
        begun: asyncio.Queue[bool] = asyncio.Queue()

        async def body(seconds: float) -> None:
            with limits.limit(seconds) as limit:
                begun.put_nowait(True)
                try:
                    await forever()
                except asyncio.CancelledError:
                    if seconds == SHORT:
                        assert limit.expired
                        task = asyncio.current_task()
                        assert task is not None
                        task.cancel()
                        await forever()
                    raise

        canceled = asyncio.ensure_future(body(LONG))
        await begun.get()
        canceled.cancel()
        both = asyncio.ensure_future(body(SHORT))
        await asyncio.wait([canceled, both])
        assert canceled.cancelled()
        assert both.cancelled()

    run(test())


def test_timer_ends_soon_after_the_last_call():
    """Nothing is left on a loop that goes on without the node."""

    async def test() -> None:
        loop = asyncio.get_running_loop()
        limits = StepLimits(loop)
        with limits.limit(10 * LONG):
            assert limits._timer is not None
            assert limits._timer.when() <= loop.time() + ROUND
        limits._expire()
        assert limits._timer is None

    run(test())
