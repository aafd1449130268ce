"""Named leases: one holder at a time, and no writes by one that lost it."""

from __future__ import annotations

from functools import partial

import pytest

from windlass.runtime.duty import LeaseLostError
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan, Step
from windlass.stores.plans import cluster, leases
from windlass.stores.plans.leases import Lease
from windlass.testing.contract.workbench import LEASE, NODE, SECOND, StoreContract, Workbench, at_once

DUTY = "archive"
OTHER = "node-2"


class LeasesContract(StoreContract):
    """Taking, renewing, losing and giving back."""

    def test_one_node_at_a_time_holds_a_lease(self, bench: Workbench) -> None:
        """J7.5: the second is refused, until the first releases it; each taking raises the fence."""
        bench.register(OTHER)
        first = take(bench, NODE)
        assert first is not None
        assert take(bench, OTHER) is None
        assert bench.database.run(leases.release, first, passed=True)
        second = take(bench, OTHER)
        assert second is not None
        assert (second.holder, second.fence > first.fence) == (OTHER, True)
        assert not bench.database.run(leases.release, first, passed=True), "it holds the lease no longer"
        assert bench.database.run(leases.held, second, LEASE, _name_queue) == 1

    def test_one_of_many_concurrent_takers_gets_a_free_lease(self, bench: Workbench) -> None:
        """J7.5: any of them, but only one."""
        nodes = [f"racer-{number}" for number in range(6)]
        for node in nodes:
            bench.register(node)
        found = [lease for lease in at_once(*(partial(take, bench, node) for node in nodes)) if lease is not None]
        assert len(found) == 1

    def test_a_lease_that_is_not_renewed_expires(self, bench: Workbench) -> None:
        """J7.5: on the store's clock; renewing it, with or without work, keeps it."""
        bench.register(OTHER)
        lease = take(bench, NODE)
        assert lease is not None
        for _ in range(3):
            bench.clock.advance(LEASE / SECOND)
            for node in (NODE, OTHER):
                bench.beat(node)
            assert bench.database.run(leases.held, lease, LEASE, _name_queue) in {0, 1}
            assert take(bench, OTHER) is None
        bench.clock.advance(LEASE / SECOND + 1)
        bench.beat(OTHER)
        bench.beat(NODE)
        assert take(bench, OTHER) is not None

    def test_work_under_a_lease_that_was_taken_over_changes_nothing(self, bench: Workbench) -> None:
        """J7.5, J7.3: a holder that hung past its lease finds a higher fence when it continues."""
        bench.register(OTHER)
        lost = take(bench, NODE)
        assert lost is not None
        bench.clock.advance(LEASE / SECOND + 1)
        bench.beat(OTHER)
        taken = take(bench, OTHER)
        assert taken is not None
        with pytest.raises(LeaseLostError):
            bench.database.run(leases.held, lost, LEASE, _name_queue)
        assert _queues(bench) == []
        assert bench.database.run(leases.held, taken, LEASE, _name_queue) == 1
        assert _queues(bench) == ["marked"]

    def test_a_node_that_takes_its_own_lease_again_ends_what_it_had_begun(self, bench: Workbench) -> None:
        """J7.5: after an error it may not know that it still has it; an earlier plan on its way is then refused."""
        before = take(bench, NODE)
        again = take(bench, NODE)
        assert before is not None
        assert again == before._replace(fence=before.fence + 1)
        with pytest.raises(LeaseLostError):
            bench.database.run(leases.held, before, LEASE, _name_queue)

    def test_leases_of_a_lost_node_are_free_at_once(self, bench: Workbench) -> None:
        """J7.5: not only when they expire; the same for a node that signed off without releasing them."""
        for node in (OTHER, "third"):
            bench.register(node)
        assert take(bench, OTHER, lease_us=1000 * LEASE) is not None
        bench.lose(OTHER, alive=[NODE, "third"])
        assert take(bench, "third", lease_us=1000 * LEASE) is not None
        bench.database.run(cluster.unregister, "third")
        assert bench.database.run(leases.release_abandoned) == 1
        assert bench.database.run(leases.release_abandoned) == 0
        assert take(bench, NODE) is not None

    def test_a_node_that_was_marked_lost_takes_no_lease(self, bench: Workbench) -> None:
        """J7.3: until it has noticed and has a new id."""
        bench.lose(NODE)
        assert take(bench, NODE) is None

    def test_a_lease_read_before_a_pass_ended_is_no_reason_for_another(self, bench: Workbench) -> None:
        """J7.5: a node that reads the lease during a pass and takes it just after finds the duty done."""
        bench.register(OTHER)
        lease = take(bench, NODE)
        assert lease is not None
        seen = _seen(bench)
        bench.database.run(leases.release, lease, passed=True)
        assert bench.database.run(leases.take, Lease(DUTY, OTHER, seen.fence), LEASE) is None
        assert take(bench, OTHER) is not None

    def test_only_a_duty_done_to_the_end_has_passed(self, bench: Workbench) -> None:
        """J7.5: a duty that was interrupted is due at once for the next node."""
        assert bench.database.read(leases.read, DUTY) is None
        lease = take(bench, NODE)
        assert lease is not None
        began = bench.clock.micros()
        bench.clock.advance(1)
        bench.database.run(leases.release, lease, passed=False)
        assert _seen(bench) == leases.Seen(bench.clock.micros(), began, None, lease.fence + 1, 0)
        lease = take(bench, NODE)
        assert lease is not None
        bench.database.run(leases.release, lease, passed=True)
        assert _seen(bench).passed_at == bench.clock.micros()


def take(bench: Workbench, node: str, lease_us: int = LEASE) -> Lease | None:
    """Look at the lease and try to take it."""
    bench.database.run(leases.create, DUTY)
    return bench.database.run(leases.take, Lease(DUTY, node, _seen(bench).fence), lease_us)


def _seen(bench: Workbench) -> leases.Seen:
    seen = bench.database.read(leases.read, DUTY)
    assert seen is not None
    return seen


def _name_queue(dialect: Dialect) -> Plan[int]:
    """Some write."""
    del dialect
    counts: list[int] = yield Step("insert_queue", rows=[{"name": "marked"}])
    return sum(counts)


def _queues(bench: Workbench) -> list[str]:
    return sorted(bench.heads().queues)
