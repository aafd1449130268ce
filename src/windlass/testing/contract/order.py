"""Order across limits: a job behind a limit with room keeps its position in the one order, on every store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from random import Random

import pytest

from windlass.domain.circuit import Circuit
from windlass.domain.job import Claim, NewJob
from windlass.domain.lanes import QUEUE, Lane, read_lane
from windlass.engine.claim_reach import ALL, choose
from windlass.stores.claim_order import ClaimRequest, Trust
from windlass.stores.plans import claims, limits
from windlass.stores.plans.limits import Limit
from windlass.testing.contract.gate_setup import GATEWAY, STRIPE, GatedContract
from windlass.testing.contract.workbench import NODE, SECOND, Workbench, new_job

QUARTER = 15 * 60 * SECOND
ACME, OTHER = (Lane(resource="stripe", resource_key=key).text for key in ("acme", "other"))
BOTH = Lane(resource="stripe", circuit="gateway").text
LANES = {"resource": STRIPE, "key": ACME, "circuit": GATEWAY, "resource and circuit": BOTH}

every_lane = pytest.mark.parametrize("lane", LANES.values(), ids=LANES)


class OrderContract(GatedContract):
    """What a limit holds back is skipped; everything else comes in the exact order, wherever it waits."""

    @every_lane
    def test_a_critical_job_behind_a_free_limit_comes_before_a_lowest_one_without(
        self, bench: Workbench, lane: str
    ) -> None:
        """J3.1, J3.4: one job at a time, as a worker with one slot claims."""
        self._resource(bench, cap=100)
        low = bench.put(8, priority=0)
        critical = bench.put(8, priority=4, lane=lane)
        assert [claim.job_id for _ in range(16) for claim in bench.claim(1)] == critical + low

    @every_lane
    def test_a_lowest_job_behind_a_free_limit_comes_after_a_critical_one_without(
        self, bench: Workbench, lane: str
    ) -> None:
        """J3.1, J3.4: a limit does not raise a priority either; in one claim."""
        self._resource(bench, cap=100)
        low = bench.put(8, priority=0, lane=lane)
        critical = bench.put(8, priority=4)
        assert [claim.job_id for claim in bench.claim(12)] == critical + low[:4]

    def test_equal_priorities_come_by_due_time_across_lanes_and_queues(self, bench: Workbench) -> None:
        """J3.1, J3.4: then by id, although half of them wait behind a limit."""
        self._resource(bench, cap=100)
        lanes = [("default", None), ("default", STRIPE), ("mail", ACME), ("mail", GATEWAY), ("mail", None)]
        due = bench.clock.micros() - SECOND
        ids = [
            bench.put(queue=queue, lane=lane, due_at=due + nth // 10)[0]  # ten of each due time
            for nth, (queue, lane) in enumerate(lanes * 6)
        ]
        assert [claim.job_id for _ in range(10) for claim in bench.claim(3)] == ids

    def test_waiting_raises_a_job_behind_a_free_limit_over_others(self, bench: Workbench) -> None:
        """J3.1: one level per whole interval waited, in a lane as elsewhere."""
        self._resource(bench, cap=100)
        now = bench.clock.micros()
        (aged,) = bench.put(priority=1, lane=STRIPE, due_at=now - 2 * QUARTER)
        (normal,) = bench.put(priority=2)
        (high,) = bench.put(priority=3, lane=GATEWAY)
        assert [claim.job_id for claim in bench.claim_all(boost=QUARTER).claims] == [aged, high, normal]

    def test_lanes_that_share_a_limit_get_its_permits_in_the_order_of_their_jobs(self, bench: Workbench) -> None:
        """J3.1, J3.4: not lane by lane."""
        self._resource(bench, cap=3)
        first = bench.put(priority=9, queue="mail", lane=STRIPE)
        second = bench.put(priority=8, lane=STRIPE)
        plain = bench.put(priority=7)
        third, _ = bench.put(priority=6, queue="mail", lane=STRIPE), bench.put(priority=5, lane=BOTH)
        last = bench.put(priority=0)
        assert [claim.job_id for claim in bench.claim()] == [*first, *second, *plain, *third, *last]

    @pytest.mark.parametrize("wanted", [1, 3, 50])
    def test_behind_two_limits_the_narrower_one_counts_and_the_other_keeps_its_permits(
        self, bench: Workbench, wanted: int
    ) -> None:
        """J3.4: jobs that one limit holds back do not use up permits of the other."""
        self._resource(bench, cap=2)
        self._limit(bench, "mail", cap=5)
        behind_both = bench.put(9, priority=4, queue="mail", lane=STRIPE)
        mail = bench.put(9, priority=3, queue="mail")
        default = bench.put(4, priority=2)
        claimed = [claim.job_id for _ in range(20) for claim in bench.claim(wanted)]
        assert claimed == behind_both[:2] + mail[:3] + default

    @pytest.mark.parametrize("seed", range(8))
    def test_claims_come_in_the_order_of_a_full_sort_of_what_no_limit_holds_back(
        self, bench: Workbench, seed: int
    ) -> None:
        """J3.1, J3.4: queues and lanes, limits with room, with little and with none; jobs end in between."""
        random = Random(seed)  # noqa: S311 - the same jobs in every run
        caps = self._random_limits(bench, random)
        waiting = {job.id: job for job in _random_jobs(bench, random)}
        bench.script("UPDATE windlass_queue SET paused = 1 WHERE name = 'resting'")
        running: list[Claim] = []
        boost, chunk = random.choice([0, QUARTER]), random.choice([1, 4, 64])
        claim = self._claimer(bench, boost=boost, chunk=chunk, tiers=random.choice([1, 2, ALL]))
        while True:
            expected = _in_order(waiting, running, caps, bench.clock.micros(), boost)
            claims = claim(random.randint(1, 12))
            assert [one.job_id for one in claims] == expected[: len(claims)]
            assert bool(claims) == bool(expected), "there is work that nothing holds back"
            for one in claims:
                del waiting[one.job_id]
            running += claims
            if not claims and not running:
                break
            random.shuffle(running)
            kept = 0 if not claims else random.randint(0, len(running))
            for one in running[kept:]:
                assert bench.succeed(one)
            del running[kept:]
        assert all(_is_held_for_good(job, caps, bench.clock.micros()) for job in waiting.values())
        assert waiting

    def _random_limits(self, bench: Workbench, random: Random) -> dict[str, int]:
        """Return how many may pass each gate."""
        resource, mail = random.choice([1, 2, 5, 100]), random.choice([1, 3, 100])
        self._resource(bench, cap=resource)
        self._limit(bench, "mail", cap=mail)
        self._limit(bench, "shut", cap=0)
        bench.database.run(limits.configure_resource, "none", Limit(0, None, None))
        bench.database.run(limits.steer_circuit, "broken", Circuit.opened_by_hand)
        caps = {"queue:mail": mail, "queue:shut": 0, "resource:none": 0, "circuit:broken": 0}
        return caps | dict.fromkeys(["resource:stripe", "resource:stripe/acme", "resource:stripe/other"], resource)

    def _claimer(self, bench: Workbench, boost: int, chunk: int, tiers: int) -> Callable[[int], list[Claim]]:
        """Claim as a node does: with what it learned about gates, and from all tiers where the first have nothing."""
        trust: Trust | None = None
        turn = 0

        def claim(wanted: int, tiers: int = tiers) -> list[Claim]:
            nonlocal trust, turn
            turn += 1
            found = bench.heads()
            due = [head for head in found.heads if head.due_at <= found.now]
            heads, others, _ = choose(due, found.limited, tiers, found.now, boost)
            request = ClaimRequest(NODE, heads, wanted, chunk, boost, found.limited, turn, trust, others)
            try:
                claimed = bench.database.run(claims.claim, request)
            except claims.TrustError:
                claimed = bench.database.run(claims.claim, request._replace(trust=None))
            trust = claimed.trust
            return claimed.claims or (claim(wanted, ALL) if others else [])

        return claim


def _random_jobs(bench: Workbench, random: Random) -> list[NewJob]:
    """Jobs of several queues, lanes and priorities; past, present and future, many with one due time."""
    now = bench.clock.micros()
    texts = [lane.text for lane in (Lane("none"), Lane(circuit="broken"), Lane("stripe", "other", "broken"))]
    lanes = [None, None, None, STRIPE, ACME, OTHER, GATEWAY, BOTH, *texts]
    made = [
        new_job(
            queue=random.choice(["default", "default", "mail", "web", "shut", "resting"]),
            lane=random.choice(lanes),
            priority=random.randrange(5),
            due_at=random.choice([now, now - QUARTER, now + SECOND, now - random.randrange(4 * QUARTER)]),
        )
        for _ in range(120)
    ]
    bench.submit(made)
    return made


def _gates(job: NewJob | Claim) -> tuple[str, ...]:
    return (QUEUE + job.queue, *read_lane(job.lane).gates)


def _in_order(
    waiting: Mapping[str, NewJob], running: list[Claim], caps: Mapping[str, int], now: int, boost: int
) -> list[str]:
    """Return the jobs by the rule, computed literally: the next in the order whose limits have room for one more."""

    def rank(job: NewJob) -> tuple[int, int, str]:
        due = job.due_at or 0
        return (-(job.priority + ((now - due) // boost if boost else 0)), due, job.id)

    in_use = Counter(gate for claim in running for gate in _gates(claim))
    found = []
    for job in sorted((job for job in waiting.values() if (job.due_at or 0) <= now), key=rank):
        if job.queue != "resting" and all(in_use[gate] < caps.get(gate, 1000) for gate in _gates(job)):
            in_use.update(_gates(job))
            found.append(job.id)
    return found


def _is_held_for_good(job: NewJob, caps: Mapping[str, int], now: int) -> bool:
    never = job.queue == "resting" or any(caps.get(gate) == 0 for gate in _gates(job))
    return never or (job.due_at or 0) > now
