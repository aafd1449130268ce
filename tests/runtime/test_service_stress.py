"""Services under many callers at once."""

import asyncio
import itertools
import logging
import random
from collections.abc import Callable

import pytest

from tests.runtime.sample_services import Kind, LoopService, OwnThreadService, both_kinds
from windlass.runtime.error_handling import ErrorHandling


def work_of_every_outcome() -> Callable[[], float | None]:
    """Ticks that ask for more at once, soon or never, and now and then fail."""
    outcomes: list[float | None] = [0, 0.0005, None, -1]
    turn = itertools.count()

    def work() -> float | None:
        number = next(turn)
        if number % 7 == 3:
            raise ValueError(number)
        return outcomes[number % len(outcomes)]

    return work


async def hammer(service: LoopService | OwnThreadService, chance: random.Random) -> None:
    for _ in range(60):
        match chance.choice(["start", "wake", "wake", "stop", "rest"]):
            case "start":
                service.start()
            case "wake":
                service.wake()
            case "stop":
                await service.astop()
            case "rest":
                await asyncio.sleep(chance.choice([0, 0.0003]))


def wake_often(service: LoopService | OwnThreadService) -> None:
    for _ in range(300):
        service.wake()


@both_kinds
@pytest.mark.parametrize("seed", range(3))
async def test_hammering_start_stop_and_wake_never_overlaps_ticks_and_the_last_call_wins(kind: Kind, seed: int):
    """Many callers start, stop and wake one service, whose ticks work, fail or ask for more, in every order."""
    chance = random.Random(seed)
    quiet = logging.getLogger("windlass.service.hammered")
    service = kind(work_of_every_outcome(), ErrorHandling(0.0001, 0.0005, logger=quiet))
    wakers = (asyncio.to_thread(wake_often, service) for _ in range(2))
    await asyncio.gather(*(hammer(service, chance) for _ in range(8)), *wakers)

    service.work = lambda: None
    service.start()
    before = service.check.ticks
    service.signals.ticked.arm()
    service.wake()
    await service.signals.ticked.wait()
    assert service.check.ticks > before

    await service.astop()
    after = service.check.ticks
    service.wake()
    await asyncio.sleep(0.005)
    assert service.check.ticks == after
    assert service.check.inside == 0
    assert not service.check.overlapped
    assert not service.alive
