"""SIGKILL while schedules are fired, stored and retired: each tick is fired once, and no schedule is half stored."""

import pytest

from tests.support.crashing import KILLED, Stage
from tests.support.facts import one, rows
from tests.support.programs import SHORT_LEASES, Program
from tests.support.ticks import check_ticks, fired_at, passes_of
from tests.support.waiting import until

EVERY_SECOND = "a=every(seconds=1)"
RETIRES = {"WINDLASS_RECURRING__RETIRE_AFTER": "0"}
ACTIVE = "SELECT count(*) FROM windlass_schedule WHERE state = 'active'"
HELD = "SELECT count(*) FROM windlass_live_key WHERE holder_kind = 'schedule'"


def start(stage: Stage, schedules: str, failpoints: str = "", **environ: str) -> Program:
    given = {**SHORT_LEASES, **RETIRES, "TEST_SCHEDULES": schedules, "WINDLASS_FAILPOINTS": failpoints, **environ}
    return stage.programs.start("recurring_worker", stage.url, environ=given)


def dies(stage: Stage, schedules: str, point: str) -> None:
    worker = start(stage, schedules, f"{point}=kill")
    assert worker.exit_code() == KILLED, f"it did not die at {point}:\n{worker.printed}"


def stop(stage: Stage, worker: Program) -> None:
    worker.terminate()
    assert worker.exit_code() == 0, worker.printed
    stage.in_order()


@pytest.mark.parametrize("point", ["tick.before_commit", "tick.after_commit"])
def test_a_node_killed_while_it_fires_has_fired_a_tick_once_or_not_at_all(stage: Stage, point: str):
    """J9.2: run and next tick are there, or neither is; the next node goes on with what is due."""
    dies(stage, EVERY_SECOND, point)
    fired = sum(map(len, fired_at(stage.url).values()))
    assert (fired > 0) == (point == "tick.after_commit")
    assert one(stage.url, "SELECT count(*) FROM windlass_tick") == fired
    sound = start(stage, EVERY_SECOND)
    until(lambda: len(fired_at(stage.url).get("a", ())) >= fired + 2, "the next node to go on")
    stop(stage, sound)
    assert check_ticks(stage.url, passes_of(stage.programs.ran("pass"))) >= fired + 2


def test_a_node_killed_while_it_stores_schedules_has_stored_none_of_them(stage: Stage):
    """J9.4: nor taken a key; the next one stores them all."""
    declared = "a=every(hours=1);b=0 2 * * *;c=every(hours=2)"
    dies(stage, declared, "schedules.written")
    assert (one(stage.url, ACTIVE), one(stage.url, HELD)) == (0, 0)
    sound = start(stage, declared)
    assert sound.node
    assert (one(stage.url, ACTIVE), one(stage.url, HELD)) == (3, 3)
    stop(stage, sound)


def test_a_node_killed_while_it_retires_schedules_has_retired_none_of_them(stage: Stage):
    """J9.4, J7.5: they still fire and hold their keys, until the next holder of the lease does it."""
    first = start(stage, "a=every(hours=1);b=every(hours=1);c=every(hours=1)")
    assert first.node
    stop(stage, first)
    dies(stage, "a=every(hours=1)", "schedules.retired")
    assert (one(stage.url, ACTIVE), one(stage.url, HELD)) == (3, 3)
    sound = start(stage, "a=every(hours=1)")
    until(lambda: one(stage.url, ACTIVE) == 1, "what is no longer declared to be retired")
    assert rows(stage.url, "SELECT key FROM windlass_schedule WHERE state = 'active'") == [("a",)]
    stop(stage, sound)
