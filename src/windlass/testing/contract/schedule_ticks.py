"""Firing: each tick once, by any node, with the next tick in one transaction; what is skipped is counted."""

from __future__ import annotations

from functools import partial
from uuid import UUID

import pytest

from windlass.domain.lanes import read_lane, schedule_gate
from windlass.domain.schedule_plan import Misfire, Overlap, jitter_of
from windlass.domain.stored_schedule import SkippedTick
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan, Step
from windlass.stores.plans import schedules, ticks
from windlass.testing.contract.schedule_setup import KEY, MINUTE, SchedulesContract, declaration
from windlass.testing.contract.workbench import SECOND, StopError, Workbench, at_once, new_job


class ScheduleTicksContract(SchedulesContract):
    """What is due, what fires, and what does not."""

    def test_a_due_tick_fires_once_and_the_next_one_is_planned(self, bench: Workbench) -> None:
        """J9.2: its run is due at its nominal time, with the job's own options."""
        self._store(bench, declaration(job={"queue": "night", "priority": 4, "tags": ("a",)}))
        assert self._fire(bench).runs == 0, "an interval begins one interval after its creation"
        fired = self._pass_and_fire(bench, MINUTE + 3)
        assert (fired.runs, fired.effects.work) == (1, frozenset({("night", 4)}))
        assert self._fire(bench).advanced == 0
        (claim,) = bench.claim()
        row = self._row(bench)
        assert (claim.due_at, claim.queue, claim.priority) == (row.anchor + MINUTE * SECOND, "night", 4)
        assert bench.job(claim.job_id).tags == ("a",)
        assert (row.last_at, row.next_at, row.skipped) == (claim.due_at, claim.due_at + MINUTE * SECOND, 0)

    def test_two_nodes_that_fire_at_once_fire_each_tick_once(self, bench: Workbench) -> None:
        """J9.2: neither waits for the other; 300 schedules are more than one transaction takes."""
        self._store(bench, *(declaration(f"s{number:03}") for number in range(300)))
        bench.clock.advance(MINUTE)
        while sum(fired.advanced for fired in at_once(*[partial(self._fire, bench)] * 2)):
            pass
        assert len(bench.claim()) == 300

    def test_a_tick_that_was_fired_does_not_fire_again_when_the_clock_is_set_back(self, bench: Workbench) -> None:
        """J9.2: the next tick only grows, and a tick is unique for its schedule."""
        self._store(bench)
        start = bench.clock.now()
        assert self._pass_and_fire(bench, MINUTE).runs == 1
        bench.clock.set(start)
        assert self._pass_and_fire(bench, MINUTE).advanced == 0
        bench.script("UPDATE windlass_schedule SET next_at = next_at - 60000000")
        assert self._fire(bench).runs == 0, "someone has set the next tick back by hand"
        assert len(bench.claim()) == 1

    def test_an_uncommitted_tick_fires_again(self, bench: Workbench) -> None:
        """J9.2: run, tick and next time are one transaction."""
        self._store(bench)
        bench.clock.advance(MINUTE)

        def stopped(dialect: Dialect) -> Plan[None]:
            yield from ticks.fire(dialect, (), 0)
            raise StopError

        with pytest.raises(StopError):
            bench.database.run(stopped)
        assert self._fire(bench).runs == 1

    def test_missed_ticks_are_caught_up_with_up_to_eleven(self, bench: Workbench) -> None:
        """J9.3: CATCH_UP fires the oldest; the others are counted and reported with the first of them."""
        self._store(bench)
        fired = self._pass_and_fire(bench, 20 * MINUTE)
        assert self._claimed_ticks(bench) == [number * MINUTE for number in range(1, 12)]
        row = self._row(bench)
        assert fired.effects.skipped == (SkippedTick(KEY, row.anchor + 12 * MINUTE * SECOND, "missed", 9),)
        assert (row.skipped, row.next_at) == (9, row.anchor + 21 * MINUTE * SECOND)

    def test_missed_ticks_fire_once_for_all(self, bench: Workbench) -> None:
        """J9.3: FIRE_ONCE fires the oldest."""
        self._store(bench, declaration(misfire=Misfire.FIRE_ONCE.value))
        self._pass_and_fire(bench, 20 * MINUTE)
        assert (self._claimed_ticks(bench), self._row(bench).skipped) == ([MINUTE], 19)

    def test_missed_ticks_are_skipped_except_one_that_is_hardly_late(self, bench: Workbench) -> None:
        """J9.3: SKIP fires the last one if it is at most 10 seconds late."""
        self._store(bench, declaration(misfire=Misfire.SKIP.value))
        fired = self._pass_and_fire(bench, 20 * MINUTE + 9)
        assert (self._claimed_ticks(bench), fired.effects.skipped[0].count) == ([20 * MINUTE], 19)
        assert self._pass_and_fire(bench, MINUTE + 11).runs == 0

    def test_a_run_that_would_overlap_is_skipped(self, bench: Workbench) -> None:
        """J9.3: as long as an earlier run is in any state but a final one."""
        self._store(bench, declaration(overlap=Overlap.SKIP.value))
        assert self._pass_and_fire(bench, MINUTE).runs == 1
        fired = self._pass_and_fire(bench, MINUTE)
        tick = self._row(bench).anchor + 2 * MINUTE * SECOND
        assert (fired.runs, fired.effects.skipped) == (0, (SkippedTick(KEY, tick, "overlap"),))
        (claim,) = bench.claim()
        assert self._pass_and_fire(bench, MINUTE).runs == 0
        bench.retry(claim)
        assert self._pass_and_fire(bench, MINUTE).runs == 0
        (claim,) = bench.claim()
        bench.succeed(claim)
        assert self._pass_and_fire(bench, MINUTE).runs == 1
        assert self._row(bench).skipped == 3

    def test_runs_wait_for_each_other_in_order(self, bench: Workbench) -> None:
        """J9.3: QUEUE lets one run at a time through, the oldest first."""
        self._store(bench, declaration(overlap=Overlap.QUEUE.value))
        assert self._pass_and_fire(bench, 3 * MINUTE).runs == 3
        order: list[int] = []
        for _ in range(3):
            (claim,) = bench.claim()
            assert bench.claim() == []
            order.append(claim.due_at)
            bench.succeed(claim)
        assert order == sorted(order)

    def test_at_most_a_hundred_runs_wait(self, bench: Workbench) -> None:
        """J9.3: further ticks are skipped until the line is shorter."""
        self._store(bench, declaration(overlap=Overlap.QUEUE.value, catch_up=200))
        fired = self._pass_and_fire(bench, 110 * MINUTE)
        assert (fired.runs, len(fired.effects.skipped), fired.effects.skipped[0].why) == (101, 9, "queue_full")
        assert self._pass_and_fire(bench, MINUTE).runs == 0
        (claim,) = bench.claim()
        bench.succeed(claim)
        assert self._pass_and_fire(bench, MINUTE).runs == 1

    def test_jitter_delays_a_run_by_the_same_time_on_every_node(self, bench: Workbench) -> None:
        """J9.3: its tick is the nominal time."""
        self._store(bench, declaration(jitter_us=20 * SECOND))
        self._pass_and_fire(bench, MINUTE)
        row = self._row(bench)
        bench.clock.advance(20)
        (claim,) = bench.claim()
        assert row.last_at is not None
        assert claim.due_at == row.last_at + jitter_of(UUID(row.id), row.last_at, 20 * SECOND)

    def test_a_run_does_not_expire_before_it_is_due(self, bench: Workbench) -> None:
        """J9.3, J1.9: jitter delays its end, too."""
        self._store(bench, declaration(jitter_us=10 * MINUTE * SECOND, job={"expires_us": SECOND}))
        self._pass_and_fire(bench, MINUTE)
        row = self._row(bench)
        assert row.last_at is not None
        delay = jitter_of(UUID(row.id), row.last_at, row.jitter_us)
        bench.clock.advance(10 * MINUTE)
        due = row.last_at + delay
        assert [(claim.due_at, claim.expires) for claim in bench.claim()] == [(due, due + SECOND)]

    def test_a_schedule_ends_with_its_last_tick_and_frees_its_key(self, bench: Workbench) -> None:
        """J9.3: it is listed without a next time."""
        end = bench.clock.micros() + 2 * MINUTE * SECOND
        self._store(bench, declaration(ends=end))
        assert self._pass_and_fire(bench, 5 * MINUTE).runs == 2
        row = self._row(bench)
        assert (row.state, row.next_at, bench.holder(KEY)) == ("ended", None, None)
        assert bench.submit_one(new_job(business_key=KEY)).duplicate is False

    def test_no_tick_is_before_the_start(self, bench: Workbench) -> None:
        """J9.3: the first one of an interval is at its start."""
        start = bench.clock.micros() + 90 * SECOND
        self._store(bench, declaration(starts=start))
        assert self._pass_and_fire(bench, 89).advanced == 0
        assert self._pass_and_fire(bench, 1).runs == 1
        assert self._row(bench).last_at == start

    def test_a_schedule_that_cannot_be_planned_does_not_block_others(self, bench: Workbench) -> None:
        """J9.2, J7.9: its zone is unknown here, or its row is damaged; other nodes may fire it."""
        self._store(bench, declaration("a"), declaration("b"), declaration("c"))
        bench.script("UPDATE windlass_schedule SET zone = 'Mars/Olympus' WHERE key = 'a'")
        bench.script("UPDATE windlass_schedule SET call = '{' WHERE key = 'b'")
        fired = self._pass_and_fire(bench, MINUTE)
        assert (fired.runs, [one.key for one in fired.unplannable]) == (1, ["a", "b"])
        aside = [one.schedule_id for one in fired.unplannable]
        assert self._fire(bench, aside).unplannable == []
        following = bench.database.read(ticks.next_tick, aside)
        assert following is not None
        assert following.next_at == self._row(bench, "c").next_at

    def test_a_trigger_runs_now_and_does_not_change_the_plan(self, bench: Workbench) -> None:
        """J9.3: also while paused, and in spite of SKIP; in the line of QUEUE it waits."""
        self._store(bench, declaration(overlap=Overlap.SKIP.value), declaration("line", overlap=Overlap.QUEUE.value))
        bench.database.run(schedules.pause, KEY)
        before = self._row(bench)
        for key in (KEY, KEY, "line", "line"):
            assert bench.database.run(schedules.trigger, key) is not None
        assert bench.database.run(schedules.trigger, "nothing") is None
        lanes = [read_lane(claim.lane).gates for claim in bench.claim()]
        assert sorted(lanes) == [(), (), (schedule_gate(self._row(bench, "line").id),)]
        assert self._row(bench) == before

    def test_a_tick_does_not_overlap_a_triggered_run(self, bench: Workbench) -> None:
        """J9.3: it is a run of the schedule like any other, and forgotten when it has ended."""
        self._store(bench, declaration(overlap=Overlap.SKIP.value))
        assert bench.database.run(schedules.trigger, KEY) is not None
        (claim,) = bench.claim()
        fired = self._pass_and_fire(bench, MINUTE)
        assert (fired.runs, [one.why for one in fired.effects.skipped]) == (0, ["overlap"])
        bench.succeed(claim)
        assert bench.database.run(_forgotten) == 1
        assert self._pass_and_fire(bench, MINUTE).runs == 1

    def test_a_resumed_schedule_continues_with_its_first_tick_after_now(self, bench: Workbench) -> None:
        """J9.3: pausing is no misfire: what it missed is neither fired nor counted."""
        self._store(bench)
        assert bench.database.run(schedules.pause, KEY)
        assert bench.database.run(schedules.pause, KEY), "again"
        assert self._pass_and_fire(bench, 30 * MINUTE + 1).advanced == 0
        assert self._row(bench).next_at is None
        assert bench.database.run(schedules.resume, KEY)
        assert bench.database.run(schedules.resume, KEY), "again"
        row = self._row(bench)
        assert (row.next_at, row.skipped) == (row.anchor + 31 * MINUTE * SECOND, 0)
        assert not bench.database.run(schedules.pause, "nothing")
        assert not bench.database.run(schedules.resume, "nothing")


def _forgotten(dialect: Dialect) -> Plan[int]:
    del dialect
    count: int = yield Step("forget_ticks", {"age_us": MINUTE * SECOND}, literals={"most": 10})
    return count
