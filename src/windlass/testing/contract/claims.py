"""Claims: the exact order, what a claim writes and returns, and concurrent claimers."""

from __future__ import annotations

from functools import partial
from random import Random

import pytest

from windlass.domain.clock import from_micros
from windlass.domain.job import Claim, NewJob
from windlass.domain.states import JobStatus
from windlass.stores.claim_order import ClaimRequest
from windlass.stores.plans import claims, jobs
from windlass.testing.contract.workbench import NODE, SECOND, StoreContract, Workbench, at_once, new_job, text_of_size

MINUTE = 60 * SECOND
QUARTER = 15 * MINUTE
UNDER_A_KILOBYTE = 1_000


class ClaimsContract(StoreContract):
    """Which jobs a claim takes, in which order, and what it does to them."""

    # ------------------------------------------------------------------ order

    @pytest.mark.parametrize("chunk", [1, 4, 64])
    @pytest.mark.parametrize("boost", [0, QUARTER])
    def test_claims_come_in_the_order_of_a_full_sort(self, bench: Workbench, chunk: int, boost: int) -> None:
        """J3.1: effective priority, then due time, then id, over several queues, however small the chunks."""
        waiting = _random_jobs(bench, _seeded(chunk), 110)
        while due := _in_order(waiting, bench.clock.micros(), boost):
            claims = bench.claim_all(12, chunk=chunk, boost=boost).claims
            assert claims, "there is work that no other node holds"
            assert [claim.job_id for claim in claims] == [job.id for job in due[: len(claims)]]
            waiting = [job for job in waiting if job not in due[: len(claims)]]
        assert bench.claim() == []
        assert len(waiting) > 0, "the future ones wait"

    def test_a_chunk_that_contains_all_jobs_returns_as_many_as_requested(self, bench: Workbench) -> None:
        """J3.1: a claim may return fewer than asked, but not when it has seen every row."""
        waiting = _random_jobs(bench, _seeded(5), 60)
        due = _in_order(waiting, bench.clock.micros(), QUARTER)
        claims = bench.claim_all(len(due) - 1, chunk=64, boost=QUARTER).claims
        assert [claim.job_id for claim in claims] == [job.id for job in due[:-1]]

    def test_the_boost_interval_may_change_between_two_claims(self, bench: Workbench) -> None:
        """J3.1: nothing stored depends on the interval; 0 turns the boost off."""
        waiting = _random_jobs(bench, _seeded(9), 90)
        for boost in (QUARTER, 0, MINUTE, 24 * 60 * MINUTE, 1, 0):
            due = _in_order(waiting, bench.clock.micros(), boost)
            claims = bench.claim_all(7, chunk=16, boost=boost).claims
            assert [claim.job_id for claim in claims] == [job.id for job in due[: len(claims)]]
            waiting = [job for job in waiting if job.id not in {claim.job_id for claim in claims}]

    def test_waiting_raises_a_low_priority_over_a_high_one(self, bench: Workbench) -> None:
        """J3.1: one level per whole interval waited, not a microsecond earlier."""
        now = bench.clock.micros()
        (low,) = bench.put(priority=1, due_at=now - QUARTER + 1)
        (high,) = bench.put(priority=2, due_at=now)
        assert [claim.job_id for claim in bench.claim_all(1, boost=QUARTER).claims] == [high]
        bench.put(priority=2, due_at=now)
        bench.clock.advance(0.000_001)
        assert [claim.job_id for claim in bench.claim_all(1, boost=QUARTER).claims] == [low]

    def test_future_jobs_are_never_claimed_whatever_their_priority(self, bench: Workbench) -> None:
        """J3.1: eligible is PENDING and due, to the microsecond."""
        (early,) = bench.put(priority=9, delay_us=SECOND)
        (now,) = bench.put(priority=0)
        assert [claim.job_id for claim in bench.claim_all(5, boost=1).claims] == [now]
        bench.clock.advance(0.999_999)
        assert bench.claim() == []
        bench.clock.advance(0.000_001)
        assert [claim.job_id for claim in bench.claim()] == [early]

    def test_jobs_of_one_due_time_come_by_id(self, bench: Workbench) -> None:
        """J3.1: a bulk enqueue gives many jobs one due time; their ids decide, across claims."""
        ids = bench.put(40, due_at=bench.clock.micros())
        assert [claim.job_id for _ in range(4) for claim in bench.claim_all(10, chunk=10).claims] == ids

    def test_a_claim_serves_only_the_queues_it_was_given(self, bench: Workbench) -> None:
        """J1.7: a worker serves all or a chosen list; heads name what it may look at, and the next due time."""
        bench.put(queue="mail", delay_us=SECOND)
        (wanted,) = bench.put(queue="pay", priority=4)
        found = bench.heads(serves=lambda queue: queue == "pay")
        assert [(head.queue, head.level, head.due_at) for head in found.heads] == [("pay", 4, bench.clock.micros())]
        assert (found.queues, found.now) == (frozenset({"pay"}), bench.clock.micros())
        bench.clock.advance(2)
        claimed = bench.database.run(claims.claim, ClaimRequest(NODE, found.heads, 10, 10, 0))
        assert [claim.job_id for claim in claimed.claims] == [wanted]
        (left,) = bench.heads().heads
        assert (left.queue, left.level, left.due_at) == ("mail", 2, bench.clock.micros() - SECOND)

    # ------------------------------------------------------------------ what a claim writes and brings

    def test_a_claim_sets_running_node_time_and_a_new_fence(self, bench: Workbench) -> None:
        """J3.2: all in one transaction, and as the claim says."""
        (job_id,) = bench.put(queue="pay", priority=3, target="shop:refund")
        due = bench.clock.micros()
        bench.clock.advance(5)
        (claim,) = bench.claim()
        assert claim == Claim(job_id, claim.fence, "pay", "shop:refund", 0, 0, 3, due, due + 5 * SECOND)
        job = bench.job(job_id)
        assert (job.status, job.node, job.version) == (JobStatus.RUNNING, NODE, 2 * claim.fence)
        assert job.picked_at == from_micros(claim.picked_at)
        assert bench.claim() == []

    def test_every_claim_of_a_job_has_a_higher_fence(self, bench: Workbench) -> None:
        """J2.1: the fence is raised by every claim, and never falls."""
        claim = bench.claimed_job()
        fences = [0, claim.fence]
        for _ in range(3):
            bench.retry(claim)
            (claim,) = bench.claim()
            fences.append(claim.fence)
        assert fences == sorted(set(fences))

    def test_a_claim_stays_light_whatever_the_payload(self, bench: Workbench) -> None:
        """J3.3: small arguments come along, large ones are read when a slot takes the job."""
        (small,) = bench.put(args=text_of_size(100))
        large = bench.put(args=text_of_size(50_000)) + bench.put(params=f'{{"p":"{"x" * 50_000}"}}')
        claimed = bench.claim_all()
        assert {claim.job_id for claim in claimed.claims} == {small, *large}
        assert small in claimed.payloads
        assert all(len(str(payload)) < UNDER_A_KILOBYTE for payload in claimed.payloads.values())
        assert all(len(str(claim)) < UNDER_A_KILOBYTE for claim in claimed.claims)
        loaded = bench.database.run(jobs.load, [small, *large])
        assert loaded.keys() == {small, *large}
        assert claimed.payloads[small] == loaded[small]

    def test_loading_leaves_unknown_jobs_out(self, bench: Workbench) -> None:
        """J3.3: payloads are read many at once; a row that was deleted by hand is simply missing."""
        (known,) = bench.put()
        loaded = bench.database.run(jobs.load, [new_job().id, known])
        assert list(loaded) == [known]

    def test_a_node_can_read_its_own_claims(self, bench: Workbench) -> None:
        """J7.8: after a lost answer a node reads its own claims, and only those."""
        bench.register("other")
        bench.put(3)
        mine = [*bench.claim(1), *bench.claim(1)]
        (theirs,) = bench.claim(node="other")
        bench.succeed(mine[0])
        assert bench.database.run(jobs.claims_of, NODE) == mine[1:]
        assert bench.database.run(jobs.claims_of, "other") == [theirs]
        assert bench.database.run(jobs.claims_of, "stranger") == []

    @pytest.mark.parametrize("node", ["stranger", "lost"])
    def test_only_a_node_with_a_lease_claims(self, bench: Workbench, node: str) -> None:
        """J7.2: a node that never registered, or was marked lost, gets nothing until it has a new id."""
        bench.register("lost")
        bench.lose("lost", alive=[NODE])
        bench.put()
        assert bench.claim(node=node) == []
        assert len(bench.claim(node=NODE)) == 1

    # ------------------------------------------------------------------ claimers at once

    def test_concurrent_claimers_get_disjoint_sets_and_leave_nothing(self, bench: Workbench) -> None:
        """J3.2: four nodes at it together; every job is claimed by exactly one."""
        nodes = [f"racer-{number}" for number in range(4)]
        for node in nodes:
            bench.register(node)
        ids = [job for queue in ("a", "b") for level in (1, 2) for job in bench.put(60, queue=queue, priority=level)]
        hauls = at_once(*[partial(_claim_until_dry, bench, node) for node in nodes])
        taken = [claim.job_id for haul in hauls for claim in haul]
        assert len(taken) == len(set(taken))
        assert set(taken) | {claim.job_id for claim in bench.claim()} == set(ids)
        for node, haul in zip(nodes, hauls, strict=True):
            assert {bench.job(claim.job_id).node for claim in haul[:5]} <= {node}

    def test_claims_continue_while_others_complete_and_retry(self, bench: Workbench) -> None:
        """J3.2: claims, completions and retries of several nodes at once; each job ends once, after its attempts."""
        ids = bench.put(60)
        nodes = [f"worker-{number}" for number in range(3)]
        for node in nodes:
            bench.register(node)
        at_once(*[partial(_work_until_done, bench, node) for node in nodes])
        assert {bench.job(job_id).status for job_id in ids} == {JobStatus.SUCCEEDED}
        assert {tuple(bench.outcomes(job_id)) for job_id in ids} == {((1, "retried"), (2, "succeeded"))}


def _seeded(seed: int) -> Random:
    return Random(seed)  # noqa: S311 - the same jobs in every run


def _random_jobs(bench: Workbench, random: Random, count: int) -> list[NewJob]:
    """Jobs of several queues and all priorities; past, present and future, many with one due time."""
    now = bench.clock.micros()
    dues = [now, now - QUARTER, now - QUARTER + 1, now + 1, now + QUARTER]
    made = [
        new_job(
            queue=random.choice(["default", "mail", "pay"]),
            priority=random.randrange(10),
            due_at=random.choice(dues) if random.random() < 0.4 else now + random.randrange(-8 * QUARTER, QUARTER),
        )
        for _ in range(count)
    ]
    bench.submit(made)
    return made


def _in_order(waiting: list[NewJob], now: int, boost: int) -> list[NewJob]:
    """Return the jobs in the order of the rule, computed literally."""

    def rank(job: NewJob) -> tuple[int, int, str]:
        assert job.due_at is not None
        effective = job.priority + ((now - job.due_at) // boost if boost else 0)
        return (-effective, job.due_at, job.id)

    return sorted([job for job in waiting if job.due_at is not None and job.due_at <= now], key=rank)


def _claim_until_dry(bench: Workbench, node: str) -> list[Claim]:
    """Claim until nothing is found; others may still hold rows then, so this need not be all."""
    haul: list[Claim] = []
    while claims := bench.claim_all(9, node=node, chunk=4).claims:
        haul += claims
    return haul


def _work_until_done(bench: Workbench, node: str) -> None:
    """Fail every first attempt, finish every second one, until nothing waits."""
    while bench.heads().heads:
        for claim in bench.claim(7, node=node):
            assert bench.succeed(claim) if claim.attempts else bench.retry(claim)
