"""Statistics: written with the outcomes, added up under a lease, the same for every reader at any time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pytest

from windlass.domain.transition import Times, dead_letter, lost, passed_over, released, retry_at, snoozed, succeeded
from windlass.runtime.duty import LeaseLostError
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan
from windlass.stores.plans import leases, statistics, unknown_targets
from windlass.stores.plans.leases import STATISTICS, Lease
from windlass.stores.plans.statistics import QueueTotals
from windlass.testing.contract.workbench import FAILURE, LEASE, NODE, SECOND, StoreContract, Workbench, at_once

OTHER = "node-2"
MINUTE = 60
MANY = 1000


class StatisticsContract(StoreContract):
    """Deltas of each flush, and the minutes they become."""

    def test_a_flush_leaves_one_count_for_each_queue(self, bench: Workbench) -> None:
        """J7.5: how many succeeded, and the sums of their times; the next flush adds to them."""
        bench.put(3, queue="mail")
        bench.put(2, queue="billing")
        claims, now = bench.claim(), bench.clock.micros()
        times = [Times(now, now + 100 * number, number) for number in range(5)]
        bench.apply(*[succeeded(claim, at, None, holds_key=False) for claim, at in zip(claims, times, strict=True)])
        first = hour(bench)
        assert {queue: sums.succeeded for queue, sums in first.items()} == {"mail": 3, "billing": 2}
        assert [sum(part) for part in zip(*first.values(), strict=True)] == [5, 0, 0, 5, 10, 1000]
        assert add_up(bench) == 2
        bench.succeed(bench.claimed_job(queue="mail"))
        assert add_up(bench) == 1
        assert hour(bench)["mail"].succeeded == 4

    def test_failures_and_retries_are_counted_and_released_jobs_are_not(self, bench: Workbench) -> None:
        """J7.5, J5.1: an attempt that failed is a retry or a failure; snoozed, released and lost ones are neither."""
        bench.put(7)
        one, two, three, *back = bench.claim()
        now = bench.clock.micros()
        times = Times(now, now + 50, 5)
        bench.apply(
            retry_at(one, times, FAILURE, SECOND),
            dead_letter(two, times, FAILURE, "retry_exhausted", holds_key=False),
            dead_letter(three, Times(None, now, None), FAILURE, "target_denied", holds_key=False, counted=False),
            snoozed(back[0], times, SECOND),
            released(back[1], times),
            passed_over(back[2], times, "target:shop:charge"),
            lost(back[3], times, FAILURE),
        )
        assert hour(bench) == {"default": QueueTotals(0, 2, 1, 2, 10, 100)}, "what never ran has no times"

    def test_late_and_repeated_writes_are_not_counted(self, bench: Workbench) -> None:
        """J7.5, J2.1: the count belongs to the write that was won, also where a commit was in doubt."""
        ended = succeeded(bench.claimed_job(), bench.times(), None, holds_key=False)
        assert bench.apply(ended) == [True]
        assert bench.apply(ended) == [False]
        assert bench.apply(ended, retried=True) == [True]
        again = retry_at(bench.claimed_job(), bench.times(), FAILURE, 0)
        assert bench.apply(again) == [True]
        (current,) = bench.claim()
        assert bench.apply(again, retry_at(current, bench.times(), FAILURE, 0)) == [False, True]
        assert hour(bench)["default"][:3] == (1, 0, 2)

    def test_jobs_that_fail_outside_of_any_attempt_are_counted(self, bench: Workbench) -> None:
        """J7.5, J7.4: given up with their node, or because no node knew their target."""
        bench.put(2, queue="doomed")
        bench.claim()
        bench.lose(NODE)
        assert len(bench.recover(budget=0).given_up) == 2
        bench.register(OTHER)
        bench.put(1, queue="strange")
        (claim,) = bench.claim(node=OTHER)
        bench.apply(passed_over(claim, bench.times(), "target:shop:charge"))
        bench.clock.advance(1)
        assert (
            len(bench.database.run(unknown_targets.fail_unknown, SECOND, lambda _: "TargetNotFoundError: no").failed)
            == 1
        )
        assert hour(bench) == {"doomed": QueueTotals(failed=2), "strange": QueueTotals(failed=1)}

    def test_adding_up_keeps_the_sums_in_bounded_batches(self, bench: Workbench) -> None:
        """J7.5: before, half-way and after, and when the same minute is added to again."""
        for _ in range(2):
            for queue in ("a", "b", "a", "c"):
                bench.succeed(bench.claimed_job(queue=queue))
                bench.clock.advance(MINUTE / 2)
            before = hour(bench)
            assert [add_up(bench, most=3), hour(bench)] == [3, before]
            assert [add_up(bench, most=3), hour(bench)] == [1, before]
            assert add_up(bench, most=3) == 0
        assert {queue: sums.succeeded for queue, sums in hour(bench).items()} == {"a": 4, "b": 2, "c": 2}

    def test_an_hour_is_this_minute_and_the_59_before_it(self, bench: Workbench) -> None:
        """J7.5: added up or not."""
        bench.clock.advance(MINUTE - bench.clock.micros() / SECOND % MINUTE)
        bench.succeed(bench.claimed_job(queue="early"))
        add_up(bench)
        bench.succeed(bench.claimed_job(queue="early"))
        bench.clock.advance(59 * MINUTE)
        assert hour(bench)["early"].succeeded == 2
        bench.clock.advance(MINUTE)
        assert hour(bench) == {}

    def test_adding_up_under_a_lost_lease_changes_nothing(self, bench: Workbench) -> None:
        """J7.5, J7.3: a holder that hung past its lease finds a higher fence, and deletes no count."""
        bench.register(OTHER)
        mine = take(bench, NODE)
        assert mine is not None
        bench.succeed(bench.claimed_job())
        bench.clock.advance(LEASE / SECOND + 1)
        bench.beat(OTHER)
        theirs = take(bench, OTHER)
        assert theirs is not None
        with pytest.raises(LeaseLostError):
            bench.database.run(leases.held, mine, LEASE, _roll_up)
        assert bench.database.run(leases.held, theirs, LEASE, _roll_up) == 1
        assert hour(bench)["default"].succeeded == 1

    def test_two_nodes_that_add_up_while_jobs_end_count_each_once(self, bench: Workbench) -> None:
        """J7.5, J4.1: no count is lost or doubled, whichever node holds the lease and whatever is read meanwhile."""
        bench.register(OTHER)
        flushes = 12
        for number in range(flushes):
            bench.put(5, queue=f"q{number % 3}")
        claims = bench.claim(MANY)
        parts = [claims[number::flushes] for number in range(flushes)]

        def finish(some: Sequence[int]) -> None:
            for number in some:
                bench.apply(*[succeeded(claim, bench.times(), None, holds_key=False) for claim in parts[number]])

        def roll_up(node: str) -> None:
            for _ in range(flushes):
                if (lease := take(bench, node)) is not None:
                    bench.database.run(leases.held, lease, LEASE, _roll_up)
                    bench.database.run(leases.release, lease, passed=True)

        def read() -> list[int]:
            return [sum(sums.succeeded for sums in hour(bench).values()) for _ in range(flushes)]

        halves = [partial(finish, range(start, flushes, 2)) for start in range(2)]
        *_, seen = at_once(*halves, partial(roll_up, NODE), partial(roll_up, OTHER), read)
        assert seen == sorted(seen), "what was counted once stays counted"
        assert {queue: sums.succeeded for queue, sums in hour(bench).items()} == dict.fromkeys(("q0", "q1", "q2"), 20)
        add_up(bench)
        assert sum(sums.succeeded for sums in hour(bench).values()) == 60

    def test_old_minutes_are_deleted_an_hour_of_them_at_a_time(self, bench: Workbench) -> None:
        """J7.5: bounded, the oldest first, and never what is young enough."""
        for _ in range(4):
            bench.succeed(bench.claimed_job())
            add_up(bench)
            bench.clock.advance(50 * MINUTE)
        kept_for = 60
        assert bench.database.run(statistics.forget, kept_for), "the first two"
        assert bench.database.run(statistics.forget, kept_for), "the third"
        assert not bench.database.run(statistics.forget, kept_for)
        assert hour(bench)["default"].succeeded == 1


def hour(bench: Workbench) -> dict[str, QueueTotals]:
    """Return the counts of each queue in the last hour."""
    return bench.database.read(statistics.last_hour)


def add_up(bench: Workbench, most: int = MANY) -> int:
    """Add up, without a lease."""
    return bench.database.run(statistics.roll_up, most)


def take(bench: Workbench, node: str) -> Lease | None:
    """Look at the lease and try to take it."""
    bench.database.run(leases.create, STATISTICS)
    seen = bench.database.read(leases.read, STATISTICS)
    assert seen is not None
    return bench.database.run(leases.take, Lease(STATISTICS, node, seen.fence), LEASE)


def _roll_up(dialect: Dialect) -> Plan[int]:
    return statistics.roll_up(dialect, MANY)
