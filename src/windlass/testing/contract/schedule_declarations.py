"""Storing, retiring and removing schedules, and their keys."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pytest

from windlass.domain.admission import Holder
from windlass.domain.job import Conflict
from windlass.domain.schedule_plan import Overlap
from windlass.stores.plans import cluster, limits, schedule_upkeep, schedules
from windlass.testing.contract.schedule_setup import KEY, MINUTE, SHOP, SchedulesContract, declaration
from windlass.testing.contract.workbench import LEASE, SECOND, Workbench, at_once, new_job

DAY = 86_400
OTHER = "mail:app"
RETIRE_AFTER = 15 * SECOND


class ScheduleDeclarationsContract(SchedulesContract):
    """What is written when code declares schedules, and when it no longer does."""

    def test_unchanged_schedules_are_not_written_again(self, bench: Workbench) -> None:
        """J9.4: a worker of the same version changes nothing."""
        assert len(self._store(bench).written) == 1
        before = self._row(bench)
        bench.clock.advance(30)
        assert self._store(bench).written == []
        assert self._row(bench) == before
        assert not bench.database.read(schedules.differs, declaration())

    def test_a_changed_schedule_is_changed_in_place(self, bench: Workbench) -> None:
        """J9.4: id, pause and counts stay; the next tick is planned anew only if the times have changed."""
        self._store(bench)
        self._pass_and_fire(bench, MINUTE)
        before = self._row(bench)
        bench.clock.advance(30)
        self._store(bench, declaration(job={"queue": "other"}))
        after = self._row(bench)
        assert (after.id, after.next_at, after.last_at) == (before.id, before.next_at, before.last_at)
        assert after.call != before.call
        self._store(bench, declaration(cron="every(hours=1)"))
        assert self._row(bench).next_at == before.anchor + 60 * MINUTE * SECOND, "counted from its creation"
        bench.database.run(schedules.pause, KEY)
        self._store(bench, declaration(cron="every(hours=2)"))
        paused = self._row(bench)
        assert (paused.state, paused.next_at, paused.cron) == ("paused", None, "every(hours=2)")

    def test_nodes_that_store_at_once_store_one_schedule_each(self, bench: Workbench) -> None:
        """J9.4: workers of one deploy start together."""
        wanted = [declaration(f"s{number}") for number in range(20)]
        at_once(*[partial(self._store, bench, *wanted, origin=SHOP)] * 3)
        assert [row.key for row in bench.database.read(schedules.read, "")] == sorted(one.key for one in wanted)

    def test_a_schedule_holds_its_key_as_a_business_key(self, bench: Workbench) -> None:
        """J1.5, J9.2: no job can take it, whatever its policy, and none is returned or replaced."""
        self._store(bench)
        row = self._row(bench)
        assert bench.holder(KEY) == Holder(row.id, "RUNNING", "schedule")
        for policy in ("raise", "return_existing", "replace"):
            answer = bench.submit_one(new_job(business_key=KEY, on_conflict=policy))
            assert isinstance(answer, Conflict), policy
            assert (answer.holder, answer.holder_kind) == (row.id, "schedule")
        assert bench.database.run(schedules.remove, KEY) == (True, None)
        assert not isinstance(bench.submit_one(new_job(business_key=KEY)), Conflict)

    def test_a_key_that_a_job_holds_is_not_taken(self, bench: Workbench) -> None:
        """J1.5: the error names the job; when the job has ended, the key is free."""
        (job,) = bench.put(business_key=KEY)
        stored = self._store(bench, declaration(), declaration("free"), origin=SHOP)
        assert (stored.held[KEY].id, [row.key for row in stored.written]) == (job, ["free"])
        (claim,) = bench.claim()
        bench.succeed(claim, holds_key=True)
        assert [row.key for row in self._store(bench, declaration(), origin=SHOP).written] == [KEY]

    def test_another_applications_schedule_is_not_touched(self, bench: Workbench) -> None:
        """J9.4: nor is a declared one by `app.schedule`, while a decorator takes over what that has stored."""
        self._store(bench, origin=SHOP)
        for origin in (OTHER, None):
            stored = self._store(bench, declaration(cron="0 2 * * *"), origin=origin)
            assert (stored.foreign, stored.written) == ({KEY: SHOP}, [])
        self._store(bench, declaration("imperative"))
        assert len(self._store(bench, declaration("imperative"), origin=SHOP).written) == 1

    def test_a_declared_schedule_is_not_removed(self, bench: Workbench) -> None:
        """J9.4: it would be back at the next start; what a renamed application has left can be removed."""
        self._store(bench, declaration("b"), declaration(), origin=SHOP)
        self._node(bench, "shop", SHOP, [KEY])
        self._node(bench, "renamed", OTHER, [KEY, "b"])
        assert bench.database.run(schedules.remove, KEY) == (True, SHOP)
        assert self._row(bench).origin == SHOP
        assert bench.database.run(schedules.remove, "nothing") == (False, None)
        assert bench.database.run(schedules.remove, "b") == (True, None)
        assert bench.holder("b") is None

    def test_an_unnamed_application_keeps_what_it_declares(self, bench: Workbench) -> None:
        """J9.4: its schedules cannot be removed while it runs."""
        self._store(bench, origin="")
        self._node(bench, "node", None, [KEY])
        assert bench.database.run(schedules.remove, KEY) == (True, "")

    def test_a_removed_schedule_leaves_no_limit_behind(self, bench: Workbench) -> None:
        """J9.4: the gate of its line goes with it."""
        self._store(bench, declaration(overlap=Overlap.QUEUE.value))
        assert len(bench.database.read(limits.gates, "schedule:")) == 1
        bench.database.run(schedules.remove, KEY)
        assert bench.database.read(limits.gates, "schedule:") == []

    # ------------------------------------------------------------------ retiring

    def _node(self, bench: Workbench, name: str, origin: str | None, keys: Sequence[str]) -> None:
        digest = ",".join(keys)
        bench.database.run(schedule_upkeep.declare, digest, keys)
        bench.database.run(cluster.register, cluster.NodeRow(name, "host", 1, "0", None, origin, digest), LEASE)

    def _retire(self, bench: Workbench) -> list[str]:
        """Do what the duty does."""
        found = bench.database.run(schedule_upkeep.live_declarations, RETIRE_AFTER)
        origins = sorted({one.origin for one in found if one.matured})
        return [key for origin in origins for key in bench.database.run(schedule_upkeep.retire, origin)]

    def test_schedules_that_no_live_node_declares_are_retired(self, bench: Workbench) -> None:
        """J9.4: once a node has been up for 15 seconds, and not while a node of the old version runs."""
        self._store(bench, declaration("a"), declaration("b"), origin=SHOP)
        self._store(bench, declaration("theirs"), origin=OTHER)
        self._store(bench, declaration("imperative"))
        self._node(bench, "old", SHOP, ["a", "b"])
        bench.clock.advance(14)
        self._node(bench, "new", SHOP, ["b"])
        assert self._retire(bench) == []
        bench.clock.advance(2)  # the lease of the old node has run out
        assert self._retire(bench) == [], "the new one is not up for long"
        bench.clock.advance(13)
        assert self._retire(bench) == ["a"]
        assert bench.holder("a") is None
        assert [row.key for row in bench.database.read(schedules.read, "")] == ["b", "imperative", "theirs"]
        assert self._retire(bench) == []

    def test_schedules_of_a_node_that_ran_only_between_two_passes_are_found(self, bench: Workbench) -> None:
        """J9.4: the upkeep looks again, although the same nodes are alive as before."""
        self._node(bench, "new", SHOP, [])
        self._store(bench, declaration("before"), origin=SHOP)
        seen = bench.database.run(schedule_upkeep.live_declarations, 0)
        assert bench.database.run(schedule_upkeep.live_declarations, 0) == seen
        self._node(bench, "old", SHOP, ["a"])
        self._store(bench, declaration("a"), origin=SHOP)
        bench.database.run(cluster.unregister, "old")
        assert bench.database.run(schedule_upkeep.live_declarations, 0) != seen

    def test_no_node_at_all_retires_nothing(self, bench: Workbench) -> None:
        """J9.4: nor does a node of another application."""
        self._store(bench, origin=SHOP)
        self._node(bench, "mail", OTHER, [])
        bench.clock.advance(15)
        assert self._retire(bench) == []

    @pytest.mark.parametrize("paused", [False, True])
    def test_a_rollback_finds_a_retired_schedule_as_it_was(self, bench: Workbench, *, paused: bool) -> None:
        """J9.4: its pause and last tick are kept, and what it would have fired meanwhile is not caught up with."""
        self._store(bench, origin=SHOP)
        self._pass_and_fire(bench, MINUTE)
        if paused:
            bench.database.run(schedules.pause, KEY)
        before = self._row(bench)
        self._node(bench, "new", SHOP, [])
        bench.clock.advance(15)
        assert self._retire(bench) == [KEY]
        assert self._pass_and_fire(bench, 10 * MINUTE).advanced == 0
        self._store(bench, origin=SHOP)
        after = self._row(bench)
        assert (after.id, after.last_at, after.state) == (before.id, before.last_at, "paused" if paused else "active")
        assert bench.holder(KEY) is not None
        assert self._fire(bench).advanced == 0

    def test_a_retired_schedules_pause_is_not_for_another_application(self, bench: Workbench) -> None:
        """J9.4: nor for app.schedule, which takes the key that is free again."""
        self._store(bench, origin=SHOP)
        bench.database.run(schedules.pause, KEY)
        self._node(bench, "new", SHOP, [])
        bench.clock.advance(15)
        assert self._retire(bench) == [KEY]
        self._store(bench)
        row = self._row(bench)
        assert (row.state, row.origin, row.next_at) == ("active", None, bench.clock.micros() + 45 * SECOND)

    def test_schedules_retired_long_ago_are_deleted(self, bench: Workbench) -> None:
        """J9.4: after 30 days, with the keys of versions that no node runs."""
        self._store(bench, origin=SHOP)
        self._node(bench, "new", SHOP, ["other"])
        bench.clock.advance(15)
        self._retire(bench)
        bench.clock.advance(29 * DAY)
        assert bench.database.run(schedule_upkeep.delete_old) == 0
        bench.clock.advance(2 * DAY)
        assert bench.database.run(schedule_upkeep.delete_old) == 1

    def test_ticks_are_forgotten_once_their_runs_have_ended(self, bench: Workbench) -> None:
        """J9.2: an hour later; that of a run that has not ended stays, as overlaps are found by it."""
        self._store(bench, declaration(overlap=Overlap.SKIP.value))
        self._pass_and_fire(bench, MINUTE)
        (claim,) = bench.claim()
        bench.clock.advance(2 * 60 * MINUTE)
        bench.database.run(schedule_upkeep.forget_ticks)
        assert self._fire(bench).runs == 0
        bench.succeed(claim)
        bench.database.run(schedule_upkeep.forget_ticks)
        assert self._pass_and_fire(bench, MINUTE).runs == 1

    def test_next_ticks_are_recomputed_by_the_current_zone_rules(self, bench: Workbench) -> None:
        """J9.1: rules change by law; a schedule that was fired or paused meanwhile keeps what was written there."""
        zoned = declaration("zoned", cron="0 2 * * *", zone="Europe/Berlin")
        self._store(bench, zoned, declaration("paused", cron="0 2 * * *", zone="Europe/Berlin"), declaration())
        before = self._row(bench, "zoned").next_at
        assert before is not None
        bench.database.run(schedules.pause, "paused")
        bench.script("UPDATE windlass_schedule SET next_at = next_at + 3600000000 WHERE key = 'zoned'")
        assert bench.database.run(schedule_upkeep.replan, "") == (["zoned"], None)
        assert self._row(bench, "zoned").next_at == before
        assert bench.database.run(schedule_upkeep.replan, "") == ([], None)
        assert self._row(bench, "paused").next_at is None
