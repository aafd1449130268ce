"""Idempotency and business keys: every conflict policy, and callers that race for one key."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from uuid import UUID

import pytest

from windlass.domain.admission import Holder
from windlass.domain.job import Conflict, NewJob, SubmittedJob
from windlass.domain.states import JobStatus
from windlass.testing.contract.workbench import NODE, StoreContract, Workbench, at_once, new_job

RACERS = 6
ROUNDS = 4


class KeysContract(StoreContract):
    """Which job gets a key, and until when."""

    # ------------------------------------------------------------------ idempotency keys

    def test_a_repeat_of_an_idempotency_key_returns_the_first_job(self, bench: Workbench) -> None:
        """J1.4: the second enqueue inserts nothing and names the first job."""
        (first,) = bench.put(idempotency_key="pay-7")
        again = new_job(idempotency_key="pay-7")
        assert bench.submit_one(again) == SubmittedJob(first, duplicate=True)
        assert not bench.exists(again.id)

    def test_an_idempotency_key_is_never_free_again(self, bench: Workbench) -> None:
        """J1.4: it outlives its job, whichever way that ended."""
        for key, end in (("won", bench.succeed), ("lost", bench.fail)):
            claim = bench.claimed_job(idempotency_key=key)
            assert end(claim)
            assert bench.submit_one(new_job(idempotency_key=key)) == SubmittedJob(claim.job_id, duplicate=True)

    def test_an_idempotency_key_given_twice_in_one_call_makes_one_job(self, bench: Workbench) -> None:
        """J1.4: within a unit, and across the units of one transaction."""
        jobs = [new_job(idempotency_key="pay-7") for _ in range(3)]
        submitted, later = bench.submit(jobs[:2], jobs[2:])
        first = jobs[0].id
        assert submitted == [SubmittedJob(first), SubmittedJob(first, duplicate=True)]
        assert later == [SubmittedJob(first, duplicate=True)]
        assert [claim.job_id for claim in bench.claim()] == [first]

    @pytest.mark.parametrize("policy", ["raise", "return_existing", "replace"])
    def test_the_idempotency_key_is_checked_before_the_business_key(self, bench: Workbench, policy: str) -> None:
        """J1.5: a repeat returns the first job even while that job holds the business key."""
        (first,) = bench.put(idempotency_key="pay-7", business_key="order:7")
        again = new_job(idempotency_key="pay-7", business_key="order:7", on_conflict=policy)
        assert bench.submit_one(again) == SubmittedJob(first, duplicate=True)
        assert bench.job(first).status is JobStatus.PENDING

    # ------------------------------------------------------------------ business keys

    def test_a_held_business_key_is_refused_and_the_holder_named(self, bench: Workbench) -> None:
        """J1.5: `raise` names the holder, while it waits and while it runs."""
        (holder,) = bench.put(business_key="order:7")
        assert bench.submit_one(new_job(business_key="order:7")) == Conflict("order:7", holder)
        bench.claim()
        assert bench.submit_one(new_job(business_key="order:7")) == Conflict("order:7", holder)

    def test_return_existing_answers_with_the_holder(self, bench: Workbench) -> None:
        """J1.5: `return_existing` inserts nothing."""
        (holder,) = bench.put(business_key="order:7")
        other = new_job(business_key="order:7", on_conflict="return_existing")
        assert bench.submit_one(other) == SubmittedJob(holder, duplicate=True)
        assert not bench.exists(other.id)

    def test_replace_supersedes_a_holder_that_has_not_started(self, bench: Workbench) -> None:
        """J1.5: the old holder is CANCELED, names its successor, and never runs."""
        (old,) = bench.put(business_key="order:7", tags=("t",))
        new = new_job(business_key="order:7", on_conflict="replace")
        assert bench.submit_one(new) == SubmittedJob(new.id, supersedes=old)
        canceled = bench.job(old)
        assert (canceled.status, canceled.reason) == (JobStatus.CANCELED, "superseded")
        assert (canceled.superseded_by, canceled.attempts) == (UUID(new.id), 0)
        assert canceled.finished_at == bench.clock.now()
        assert bench.holder("order:7") == Holder(new.id, "PENDING")
        assert [claim.job_id for claim in bench.claim()] == [new.id]

    def test_replace_supersedes_a_holder_that_waits_for_its_retry(self, bench: Workbench) -> None:
        """J1.5: between two attempts a job has not started either; what it has spent stays on record."""
        claim = bench.claimed_job(business_key="order:7")
        bench.retry(claim, delay_us=1_000_000)
        new = new_job(business_key="order:7", on_conflict="replace")
        assert bench.submit_one(new) == SubmittedJob(new.id, supersedes=claim.job_id)
        assert (bench.job(claim.job_id).status, bench.job(claim.job_id).attempts) == (JobStatus.CANCELED, 1)
        assert bench.outcomes(claim.job_id) == [(1, "retried")]

    def test_replace_refuses_a_running_holder(self, bench: Workbench) -> None:
        """J1.5: a running holder raises, and nothing of it changes."""
        claim = bench.claimed_job(business_key="order:7")
        before = bench.seen(claim.job_id)
        new = new_job(business_key="order:7", on_conflict="replace")
        assert bench.submit_one(new) == Conflict("order:7", claim.job_id)
        assert bench.seen(claim.job_id) == before
        assert not bench.exists(new.id)
        assert bench.succeed(claim, holds_key=True)

    def test_replacing_twice_in_one_call_leaves_the_last(self, bench: Workbench) -> None:
        """J1.5: within one transaction each replacement sees the one before it."""
        (old,) = bench.put(business_key="order:7")
        first, second = (new_job(business_key="order:7", on_conflict="replace") for _ in range(2))
        submitted, again = SubmittedJob(first.id, supersedes=old), SubmittedJob(second.id, supersedes=first.id)
        assert bench.submit([first], [second]) == [[submitted], [again]]
        assert bench.job(old).superseded_by == UUID(first.id)
        assert bench.job(first.id).superseded_by == UUID(second.id)
        assert bench.holder("order:7") == Holder(second.id, "PENDING")

    def test_a_business_key_is_free_again_at_any_end(self, bench: Workbench) -> None:
        """J1.5: SUCCEEDED, FAILED and CANCELED free the key; the next holder holds it alone."""
        for end in (bench.succeed, bench.fail):
            claim = bench.claimed_job(business_key="order:7")
            assert end(claim, holds_key=True)
            assert bench.holder("order:7") is None
        (superseded,) = bench.put(business_key="order:7")
        last = new_job(business_key="order:7", on_conflict="replace")
        bench.submit([last])
        assert bench.job(superseded).status is JobStatus.CANCELED
        assert bench.holder("order:7") == Holder(last.id, "PENDING")

    def test_a_requeued_job_keeps_its_business_key(self, bench: Workbench) -> None:
        """J1.5: the key is held by live jobs, whatever they have been through."""
        claim = bench.claimed_job(business_key="order:7")
        bench.retry(claim)
        assert bench.holder("order:7") == Holder(claim.job_id, "PENDING")
        bench.claim()
        bench.lose(NODE)
        bench.recover()
        assert bench.holder("order:7") == Holder(claim.job_id, "PENDING")

    # ------------------------------------------------------------------ races

    def test_threads_that_race_for_an_idempotency_key_make_one_job(self, bench: Workbench) -> None:
        """J1.4: exactly one wins, and all the others are given its id."""
        for number in range(ROUNDS):
            jobs = [new_job(idempotency_key=f"pay-{number}") for _ in range(RACERS)]
            answers = at_once(*self._submitting(bench, jobs))
            winners = {answer.job_id for answer in answers if not answer.duplicate}
            assert len(winners) == 1
            assert {answer.job_id for answer in answers} == winners
            assert {job.id for job in jobs if bench.exists(job.id)} == winners

    def test_threads_that_race_for_a_business_key_make_one_holder(self, bench: Workbench) -> None:
        """J1.5: exactly one is stored; `raise` and `return_existing` are both answered with it."""
        for number in range(ROUNDS):
            jobs = [new_job(business_key=f"order:{number}") for _ in range(RACERS)]
            jobs = [job._replace(on_conflict="return_existing") if n % 2 else job for n, job in enumerate(jobs)]
            answers = at_once(*self._submitting(bench, jobs))
            (holder,) = {
                answer.job_id for answer in answers if isinstance(answer, SubmittedJob) and not answer.duplicate
            }
            assert {a.holder if isinstance(a, Conflict) else a.job_id for a in answers} == {holder}
            assert {job.id for job in jobs if bench.exists(job.id)} == {holder}

    def test_threads_that_race_to_replace_form_one_chain_of_successors(self, bench: Workbench) -> None:
        """J1.5: every replacement is superseded by another one, but for the last."""
        (first,) = bench.put(business_key="order:7")
        jobs = [new_job(business_key="order:7", on_conflict="replace") for _ in range(RACERS)]
        answers = at_once(*self._submitting(bench, jobs))
        assert [answer.job_id for answer in answers] == [job.id for job in jobs]
        assert len({answer.supersedes for answer in answers}) == RACERS
        line = [first]
        while (successor := bench.job(line[-1]).superseded_by) is not None:
            line.append(str(successor))
        assert sorted(line[1:]) == sorted(job.id for job in jobs)
        assert bench.holder("order:7") == Holder(line[-1], "PENDING")

    def test_replacing_and_claiming_at_once_never_loses_nor_doubles(self, bench: Workbench) -> None:
        """J1.5, J2.1: either the holder started and the replacement is refused, or it never starts."""
        for number in range(3 * ROUNDS):
            (old,) = bench.put(business_key=f"order:{number}")
            new = new_job(business_key=f"order:{number}", on_conflict="replace")
            claims, answer = at_once(bench.claim, partial(bench.submit_one, new))
            started = {claim.job_id for claim in claims}
            if old in started:
                assert answer == Conflict(f"order:{number}", old)
                assert not bench.exists(new.id)
            else:
                assert answer == SubmittedJob(new.id, supersedes=old)
                assert bench.job(old).status is JobStatus.CANCELED
            started |= {claim.job_id for claim in bench.claim()}
            assert len(started) == 1

    def _submitting(self, bench: Workbench, jobs: list[NewJob]) -> list[Callable[[], SubmittedJob]]:
        return [partial(bench.submit_one, job) for job in jobs]
