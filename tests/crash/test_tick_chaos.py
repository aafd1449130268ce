"""Three nodes that are killed, stopped and have their clocks set fire exactly what follows from what they saw."""

import random
from pathlib import Path

import pytest

from tests.support.crashing import Stage
from tests.support.facts import rows
from tests.support.freezing import while_no_write_runs
from tests.support.programs import SHORT_LEASES, Program
from tests.support.ticks import check_ticks, fired_at, passes_of
from tests.support.waiting import until

SCHEDULES = "a=every(seconds=1);b=* * * * * *|FIRE_ONCE;c=every(seconds=2)|SKIP;d=*/3 * * * * *"
ROUNDS = 8


class Crew:
    """Three workers on one store, by one clock that can be set."""

    def __init__(self, stage: Stage, clock: Path, dice: random.Random) -> None:
        self.stage = stage
        self.clock = clock
        self.dice = dice
        self.error = 0.0
        self.set_clock(0.0)
        self.workers = [self.start() for _ in range(3)]

    def start(self) -> Program:
        given = {**SHORT_LEASES, "TEST_SCHEDULES": SCHEDULES, "TEST_CLOCK": str(self.clock)}
        return self.stage.programs.start("recurring_worker", self.stage.url, environ=given)

    def set_clock(self, by: float) -> None:
        """Set the clock of all of them at once; a reader sees the old time or the new one."""
        self.error += by
        new = self.clock.with_suffix(".new")
        new.write_text(str(self.error))
        new.replace(self.clock)

    def kill_one(self) -> None:
        number = self.dice.randrange(3)
        self.workers[number].kill()
        self.workers[number] = self.start()

    def stop_one(self) -> None:
        worker = self.dice.choice(self.workers)
        assert worker.node
        with while_no_write_runs(self.stage.url):
            worker.freeze()
        self.progress(1)
        worker.resume()

    def kill_all(self) -> None:
        """An outage of everything, during which time goes by."""
        for worker in self.workers:
            worker.kill()
        self.set_clock(self.dice.choice((2, 40)))
        self.workers = [self.start() for _ in range(3)]

    def jump(self) -> None:
        self.set_clock(self.dice.choice((-2, 5, 30)))

    def progress(self, runs: int) -> None:
        """Wait until so many more runs are there."""
        before = self.runs()
        until(lambda: self.runs() >= before + runs, f"{runs} more runs than {before}", 120)

    def runs(self) -> int:
        return sum(map(len, fired_at(self.stage.url).values()))


@pytest.mark.parametrize("seed", [7])
def test_nodes_under_kills_stops_and_clock_jumps_fire_what_is_predicted(stage: Stage, tmp_path: Path, seed: int):
    """J9.2, J9.3: each tick once, missed ones by the policy of their schedule, counted where they are not fired."""
    dice = random.Random(seed)
    crew = Crew(stage, tmp_path / "clock", dice)
    harm = [crew.kill_one, crew.stop_one, crew.kill_all, crew.jump]
    for number in range(ROUNDS):
        crew.progress(3)
        harm[number % len(harm)]()
    crew.progress(3)
    for worker in crew.workers:
        assert worker.node
        worker.terminate()
    for worker in crew.workers:
        assert worker.exit_code() in (0, 3), worker.printed
    passes = passes_of(stage.programs.ran("pass"))
    assert check_ticks(stage.url, passes) >= 3 * ROUNDS
    assert len({one.key for one in passes}) == 4


def test_the_judge_finds_a_tick_that_was_fired_twice_or_lost(stage: Stage, tmp_path: Path):
    """J9.2: else the other test would prove nothing."""
    crew = Crew(stage, tmp_path / "clock", random.Random(1))
    crew.progress(6)
    for worker in crew.workers:
        assert worker.node
        worker.terminate()
    for worker in crew.workers:
        worker.exit_code()
    passes = passes_of(stage.programs.ran("pass"))
    check_ticks(stage.url, passes)
    fired = fired_at(stage.url)
    key = max(fired, key=lambda name: len(fired[name]))
    last = max(one.next_at for one in passes if one.key == key)
    with pytest.raises(AssertionError, match="does not follow"):
        check_ticks(stage.url, [one for one in passes if (one.key, one.next_at) != (key, last)])
    rows(stage.url, f"UPDATE windlass_schedule SET skipped = skipped + 1 WHERE key = '{key}'")
    with pytest.raises(AssertionError, match="does not follow"):
        check_ticks(stage.url, passes)
