"""Wakeups after a node's commits; that they arrive is tested in `test_wakeup.py`."""

from typing import Any, cast

from windlass.domain.clock import SystemClock
from windlass.domain.ended import Effects
from windlass.domain.job import Claim
from windlass.domain.transition import Times, released
from windlass.engine.known_work import KnownWork
from windlass.engine.node_wakeups import NodeWakeups
from windlass.events.bus import EventBus
from windlass.publisher import Publisher

DAMAGED = cast("int", "high")
"""SQLite stores what it is given."""
LEVELS = frozenset({("q", 1), ("q", DAMAGED)})


class Recorder:
    """A coordinator, and handles of which none waits."""

    awaits = False

    def __init__(self) -> None:
        self.levels: set[tuple[str, int]] = set()

    def notify_new_work(self, queue: str, level: int) -> None:
        self.levels.add((queue, level))


def make(recorder: Any) -> NodeWakeups:
    return NodeWakeups(KnownWork(1.0), cast("Any", None), (cast("Any", None), cast("Any", None)), recorder)


def claim(level: int) -> Claim:
    values: dict[str, Any] = dict.fromkeys(Claim._fields, 0)
    return Claim(**{**values, "job_id": "x", "queue": "q", "priority": level, "lane": None, "holds": None})


async def test_levels_that_cannot_be_sorted_are_woken_for_by_effects():
    """J7.9: a damaged level beside others keeps none of them from being woken for."""
    recorder = Recorder()
    publisher = Publisher(EventBus(str), cast("Any", recorder), SystemClock(), make(recorder))
    publisher.publish([], Effects(work=LEVELS))
    assert recorder.levels == LEVELS


async def test_levels_that_cannot_be_sorted_are_woken_for_by_requeued_jobs():
    """J7.9: a drain releases its claims, whatever their levels are."""
    recorder = Recorder()
    claims = [claim(level) for _, level in LEVELS]
    make(recorder).requeued([(one, released(one, Times(None, 0, None))) for one in claims])
    assert recorder.levels == LEVELS


async def test_levels_that_cannot_be_sorted_are_woken_for_by_freed_permits():
    """J7.9: likewise."""
    recorder = Recorder()
    make(recorder).permits_freed([claim(level) for _, level in LEVELS])
    assert recorder.levels == LEVELS
