"""Gates: resources and their keys let through as many as allowed, on every store."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

from windlass.domain.job import Claim
from windlass.domain.lanes import QUEUE, RESOURCE, Lane
from windlass.domain.transition import lost, released, snoozed
from windlass.stores.plans import limits, moves, permits
from windlass.testing.contract.gate_setup import STRIPE, GatedContract
from windlass.testing.contract.workbench import FAILURE, NODE, SECOND, Workbench, at_once


def _of(key: str) -> str | None:
    return Lane(resource="stripe", resource_key=key).text


class GatesContract(GatedContract):
    """Never more than allowed, counted in the gate's own row, released at every kind of end."""

    def test_no_more_than_the_permits_are_claimed(self, bench: Workbench) -> None:
        """J6.2, J3.4: decided in the claim; what is kept back waits, in its order."""
        self._resource(bench, cap=3)
        ids = bench.put(8, lane=STRIPE)
        first = bench.claim()
        assert [claim.job_id for claim in first] == ids[:3]
        assert bench.claim() == []
        assert bench.succeed(first[0])
        assert [claim.job_id for claim in bench.claim()] == ids[3:4]

    def test_jobs_without_a_gate_are_claimed_past_a_full_one(self, bench: Workbench) -> None:
        """J3.4: a blocked job is skipped and delays no other."""
        self._resource(bench, cap=0)
        bench.put(50, lane=STRIPE, priority=9)
        plain = bench.put(3, priority=0)
        assert [claim.job_id for claim in bench.claim()] == plain

    def test_each_key_has_its_own_permits(self, bench: Workbench) -> None:
        """J6.2: keyed by tenant, one tenant's jobs do not use up the others' permits."""
        self._resource(bench, cap=2)
        for key in ("acme", "a/b c%", "änne"):
            bench.put(5, lane=_of(key))
        bench.put(5, lane=STRIPE)
        claims = bench.claim()
        lanes = [_of("acme"), _of("a/b c%"), _of("änne"), STRIPE]
        assert sorted(str(claim.lane) for claim in claims) == sorted(map(str, lanes * 2))
        assert bench.claim() == []

    def test_every_end_releases_the_permit(self, bench: Workbench) -> None:
        """J6.2: success, failure, retry, snooze, release and a died process, each once."""
        self._resource(bench, cap=1)
        endings: dict[str, Any] = {
            "success": bench.succeed,
            "failure": bench.fail,
            "retry": partial(bench.retry, delay_us=1000 * SECOND),
            "snooze": lambda claim: all(bench.apply(snoozed(claim, bench.times(), SECOND * 999))),
            "died": lambda claim: all(bench.apply(lost(claim, bench.times(), FAILURE))),
        }
        for name, end in endings.items():
            bench.put(lane=STRIPE)
            (claim,) = bench.claim()
            assert bench.claim() == [], name
            assert end(claim), name
            assert self._in_use(bench, RESOURCE) == 0, name
        (last,) = bench.claim()  # the one whose process died
        assert bench.succeed(last)

    def test_a_late_end_releases_no_permit_twice(self, bench: Workbench) -> None:
        """J6.2, J2.1: only the write that holds its fence counts."""
        self._resource(bench, cap=5)
        bench.put(3, lane=STRIPE)
        first, *_ = bench.claim()
        assert bench.succeed(first)
        assert not bench.succeed(first)
        assert not bench.retry(first)
        assert self._in_use(bench, RESOURCE) == 2

    def test_the_permits_of_a_lost_node_are_released(self, bench: Workbench) -> None:
        """J6.2, J7.2: with its jobs, whether they wait again or are given up."""
        self._resource(bench, cap=4)
        bench.put(4, lane=STRIPE)
        bench.register("node-2")
        assert len(bench.claim(node="node-2")) == 4
        bench.lose("node-2", alive=[NODE])
        bench.recover(budget=0)
        assert self._in_use(bench, RESOURCE) == 0

    def test_a_canceled_body_keeps_its_permit_until_it_ends(self, bench: Workbench) -> None:
        """J6.2: released when the body has ended, even after a cancel, and only once."""
        self._resource(bench, cap=1)
        bench.put(2, lane=STRIPE)
        (claim,) = bench.claim()
        assert len(bench.database.run(moves.cancel, [claim.job_id]).ended) == 1
        assert bench.claim() == []
        body = permits.Body(claim.job_id, claim.fence)
        assert bench.database.run(permits.release, [body]) == 1
        assert bench.database.run(permits.release, [body]) == 0
        assert len(bench.claim()) == 1

    def test_the_permit_of_a_canceled_body_of_a_lost_node_is_released(self, bench: Workbench) -> None:
        """J6.2: or its node is lost."""
        self._resource(bench, cap=1)
        bench.put(2, lane=STRIPE)
        bench.register("node-2")
        (claim,) = bench.claim(node="node-2")
        bench.database.run(moves.cancel, [claim.job_id])
        bench.lose("node-2", alive=[NODE])
        bench.recover()
        assert len(bench.claim()) == 1

    def test_a_body_that_outlives_its_timeout_keeps_its_permit(self, bench: Workbench) -> None:
        """J4.5, J6.2: its job may be retried meanwhile, and waits for a permit like any other."""
        self._resource(bench, cap=1)
        bench.put(lane=STRIPE)
        (claim,) = bench.claim()
        given_back = released(claim, bench.times())._replace(lingers=True)
        assert bench.apply(given_back) == [True]
        assert bench.claim() == []
        bench.database.run(permits.release, [permits.Body(claim.job_id, claim.fence)])
        (again,) = bench.claim()
        assert again.job_id == claim.job_id

    def test_permits_can_be_changed_while_jobs_run(self, bench: Workbench) -> None:
        """J6.2: for all keys and at once, up and down."""
        self._resource(bench, cap=1)
        bench.put(9, lane=_of("acme"))
        assert len(bench.claim()) == 1
        self._resource(bench, cap=4)
        assert len(bench.claim()) == 3
        self._resource(bench, cap=2)
        assert bench.claim() == []

    def test_jobs_of_an_unknown_resource_are_claimed_without_a_permit(self, bench: Workbench) -> None:
        """J6.2: so that it fails and says so, instead of waiting for ever."""
        bench.put(lane=STRIPE)
        bench.put(lane=_of("acme"))
        assert [claim.holds for claim in bench.claim()] == [None, None]

    def test_keys_that_are_not_used_are_deleted(self, bench: Workbench) -> None:
        """J6.2: a gate for every tenant that ever was would grow for ever; one in use stays."""
        self._resource(bench, cap=1)
        bench.put(lane=_of("acme"))
        bench.put(lane=_of("other"))
        mine, yours = bench.claim()
        assert bench.succeed(mine)
        bench.clock.advance(3600)
        assert bench.database.run(permits.delete_idle_keys, 1800 * SECOND) == 1
        assert [row.gate.in_use for row in bench.database.read(limits.gates, RESOURCE)] == [0, 1]
        assert bench.succeed(yours)

    def test_a_retried_dead_letter_waits_at_its_gate_again(self, bench: Workbench) -> None:
        """J2.4, J6.2: what is started over needs its permit like before."""
        self._resource(bench, cap=1)
        dead, _ = bench.put(2, lane=STRIPE)
        (claim,) = bench.claim()
        assert bench.fail(claim)
        assert len(bench.claim()) == 1
        bench.database.run(moves.retry, [dead])
        assert bench.claim() == []

    def test_no_window_has_more_than_the_rate(self, bench: Workbench) -> None:
        """J6.2: however the claims fall, no second has more than ten."""
        self._resource(bench, cap=1000, rate=10)
        bench.put(100, lane=STRIPE)
        picked: list[int] = []
        for _ in range(60):
            picked += [claim.picked_at for claim in bench.claim()]
            bench.clock.advance(0.07)
        assert len(picked) > 30
        assert all(sum(start <= other < start + SECOND for other in picked) <= 10 for start in picked)

    def test_a_rate_lets_more_through_when_its_window_has_passed(self, bench: Workbench) -> None:
        """J3.6, J6.2: and the poller knows when."""
        self._resource(bench, cap=1000, rate=2)
        bench.put(5, lane=STRIPE)
        assert len(bench.claim()) == 2
        (head,) = bench.heads().heads
        now = bench.clock.micros()
        assert now + SECOND <= head.due_at <= now + SECOND * 21 // 20
        bench.clock.advance((head.due_at - now) / SECOND)
        assert len(bench.claim()) == 2

    def test_claimers_at_full_speed_never_exceed_a_limit(self, bench: Workbench) -> None:
        """J6.2, J1.7: counted from the claims, not from the gate."""
        self._resource(bench, cap=3)
        self._limit(bench, "mail", cap=4)
        bench.put(60, lane=STRIPE)
        bench.put(60, queue="mail")
        held: list[Claim] = []
        seen: list[Counter[str]] = []

        def work() -> None:
            for _ in range(25):
                claims = bench.claim(3)
                held.extend(claims)
                seen.append(Counter(claim.queue for claim in list(held)))
                for claim in claims:
                    held.remove(claim)
                    bench.succeed(claim)

        at_once(*[work] * 8)
        assert max(count["default"] for count in seen) <= 3
        assert max(count["mail"] for count in seen) <= 4
        assert self._in_use(bench, RESOURCE) == self._in_use(bench, QUEUE) == 0

    def test_two_claims_that_meet_a_new_key_at_once_both_keep_its_cap(self, bench: Workbench) -> None:
        """J6.2: whichever claim creates the key's gate, none takes it for a resource that was never configured."""
        self._resource(bench, cap=2)
        for number in range(15):
            bench.put(6, lane=_of(f"new-{number}"))
            claims = [claim for part in at_once(*[partial(bench.claim, 3)] * 3) for claim in part]
            assert max(Counter(claim.lane for claim in claims).values()) <= 2
            assert all(claim.holds is not None for claim in claims)
            for claim in claims:
                assert bench.succeed(claim)

    def test_among_lanes_the_first_job_of_all_comes_first(self, bench: Workbench) -> None:
        """J3.1, J3.4: by effective priority, then due time, whatever the names of lanes; none starves."""
        self._resource(bench, cap=100)
        early = bench.put(lane=_of("zoe"), priority=2)
        bench.clock.advance(10)
        for name in "abcdef":
            bench.put(20, lane=_of(name), priority=2)
        urgent = bench.put(lane=_of("yan"), priority=4)
        assert [claim.job_id for claim in bench.claim(1)] == urgent
        assert [claim.job_id for claim in bench.claim(1)] == early

    def test_a_rate_per_day_outlasts_the_deletion_of_idle_keys(self, bench: Workbench) -> None:
        """J6.2: what passed still counts after a while without claims."""
        day = 86_400 * SECOND
        bench.database.run(limits.configure_resource, "stripe", limits.Limit(None, 2, day))
        bench.put(5, lane=_of("acme"))
        for claim in bench.claim():
            assert bench.succeed(claim)
        bench.clock.advance(7200)
        bench.beat()
        assert bench.database.run(permits.delete_idle_keys, 3600 * SECOND) == 0
        assert bench.claim() == []

    def test_a_late_body_of_a_recovered_job_releases_no_permit_twice(self, bench: Workbench) -> None:
        """J6.2, J7.3: recovery has released its permit already."""
        self._resource(bench, cap=1)
        bench.put(2, lane=STRIPE)
        bench.register("node-2")
        (claim,) = bench.claim(node="node-2")
        bench.lose("node-2", alive=[NODE])
        late = released(claim, bench.times())._replace(lingers=True)
        at_once(bench.recover, partial(bench.apply, late))
        bench.recover()
        bench.database.run(permits.release, [permits.Body(claim.job_id, claim.fence)])
        assert self._in_use(bench, RESOURCE) == 0
        assert len(bench.claim()) == 1
