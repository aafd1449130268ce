"""Bodies that stand in line: a thread enters the next one in the place of the one it has ended."""

import asyncio
import random
import threading

import pytest

from windlass.domain.clock import monotonic
from windlass.runtime.threads import ThreadBodies, Turn

ROUNDS = 300


class Doors:
    """Bodies that wait to be let go, and how many are inside at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[str, threading.Event] = {}
        self.entered: list[str] = []
        self.inside = 0
        self.most_inside = 0

    def open(self, name: str) -> None:
        self._open.setdefault(name, threading.Event()).set()

    def body(self, name: str) -> str:
        with self._lock:
            self.entered.append(name)
            self.inside += 1
            self.most_inside = max(self.most_inside, self.inside)
        assert self._open.setdefault(name, threading.Event()).wait(90)
        with self._lock:
            self.inside -= 1
        return name


async def until_entered(doors: Doors, *names: str) -> None:
    async with asyncio.timeout(90):
        while doors.entered != list(names):  # noqa: ASYNC110 - a thread enters
            await asyncio.sleep(0.001)


async def begun(bodies: ThreadBodies, doors: Doors, name: str, turn: Turn | None = None) -> asyncio.Task[str]:
    task = asyncio.create_task(bodies.run(lambda: doors.body(name), turn))
    await asyncio.sleep(0)
    return task


async def test_the_next_in_line_is_entered_by_the_thread_that_is_done():
    """J4.2: in the place of the body that ended, and not before; the line is in order."""
    bodies, doors = ThreadBodies(asyncio.get_running_loop()), Doors()
    first = await begun(bodies, doors, "first")
    await until_entered(doors, "first")
    turns = [Turn(bodies), Turn(bodies)]
    second, third = [
        await begun(bodies, doors, name, turn) for name, turn in zip(("second", "third"), turns, strict=True)
    ]
    await asyncio.sleep(0.05)
    assert (doors.entered, [turn.began for turn in turns]) == (["first"], [None, None])
    doors.open("first")
    await until_entered(doors, "first", "second")
    assert turns[0].began is not None
    doors.open("second")
    doors.open("third")
    assert list(await asyncio.gather(first, second, third)) == ["first", "second", "third"]
    assert (doors.most_inside, doors.entered) == (1, ["first", "second", "third"])
    bodies.close()


async def test_a_waiting_body_begins_when_it_gets_its_turn():
    """J4.2: a slot is free that no thread has passed on."""
    bodies, doors = ThreadBodies(asyncio.get_running_loop()), Doors()
    first = await begun(bodies, doors, "first")
    ready, early = Turn(bodies), Turn(bodies)
    second = await begun(bodies, doors, "second", ready)
    ready.begin()
    early.begin()  # before its body is ready
    await until_entered(doors, "first", "second")
    third = await begun(bodies, doors, "third", early)
    await until_entered(doors, "first", "second", "third")
    for name in ("first", "second", "third"):
        doors.open(name)
    assert list(await asyncio.gather(first, second, third)) == ["first", "second", "third"]
    bodies.close()


async def test_a_withdrawn_body_never_starts_and_a_started_one_cannot_be_withdrawn():
    """J7.6: what has not started can be handed back."""
    bodies, doors = ThreadBodies(asyncio.get_running_loop()), Doors()
    first = await begun(bodies, doors, "first")
    turns = [Turn(bodies), Turn(bodies)]
    second, third = [
        await begun(bodies, doors, name, turn) for name, turn in zip(("second", "third"), turns, strict=True)
    ]
    assert turns[0].withdraw()
    second.cancel()
    doors.open("first")
    await until_entered(doors, "first", "third")
    assert not turns[1].withdraw()
    doors.open("third")
    assert [await first, await third] == ["first", "third"]
    with pytest.raises(asyncio.CancelledError):
        await second
    assert doors.entered == ["first", "third"]
    bodies.close()


async def test_an_abandoned_body_passes_its_slot_to_no_other():
    """J4.5: the loop has given its slot away; the thread must not give it away again."""
    bodies, doors = ThreadBodies(asyncio.get_running_loop()), Doors()
    first = await begun(bodies, doors, "first")
    await until_entered(doors, "first")
    second = await begun(bodies, doors, "second", Turn(bodies))
    first.cancel()
    await asyncio.wait([first])
    doors.open("first")
    await asyncio.sleep(0.1)
    assert doors.entered == ["first"]
    second.cancel()
    await asyncio.wait([second])
    bodies.close()


async def test_no_slot_is_used_twice_in_any_order_of_ends_cancels_and_turns():
    """J4.2, J4.5: as many bodies inside as were begun and not ended, in hundreds of random stories."""
    chosen = random.Random(5)
    for _ in range(ROUNDS):
        bodies, doors = ThreadBodies(asyncio.get_running_loop()), Doors()
        tasks = [await begun(bodies, doors, "0")]
        tasks += [await begun(bodies, doors, str(number), Turn(bodies)) for number in (1, 2, 3)]
        for number in chosen.sample(range(4), 4):
            await asyncio.sleep(chosen.choice([0, 0, 0.0002]))
            if chosen.random() < 0.4:
                tasks[number].cancel()
            doors.open(str(number))
        await asyncio.sleep(0.002)
        for number, task in enumerate(tasks):
            doors.open(str(number))
            task.cancel()
        await asyncio.wait(tasks)
        bodies.close()
        assert doors.most_inside <= 1, doors.entered


async def test_a_body_that_has_waited_too_long_is_not_started_by_a_thread():
    """J3.3: a thread does not enter what should have been handed back while the loop was busy."""
    bodies, doors = ThreadBodies(asyncio.get_running_loop()), Doors()
    first = await begun(bodies, doors, "first")
    await until_entered(doors, "first")
    turn = Turn(bodies, until=monotonic() - 1)
    second = await begun(bodies, doors, "second", turn)
    doors.open("first")
    assert await first == "first"
    await asyncio.sleep(0.05)
    assert (doors.entered, turn.began) == (["first"], None)
    turn.begin()
    doors.open("second")
    assert await second == "second"
    bodies.close()
