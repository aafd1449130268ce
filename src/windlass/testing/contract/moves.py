"""Moves by hand: what is allowed in each state, in sets, each move once."""

from __future__ import annotations

import pytest

from windlass.domain.admission import Holder
from windlass.domain.job import SubmittedJob
from windlass.domain.states import JobStatus
from windlass.errors import DuplicateBusinessKeyError, JobNotFoundError, JobStateError
from windlass.stores.plans import moves, replacement, search
from windlass.testing.contract.workbench import StoreContract, Workbench, at_once, new_job

S = JobStatus
RACERS = 4


class MovesContract(StoreContract):
    """Cancel, pause, resume, retry, replace."""

    def test_a_set_of_jobs_is_canceled_as_far_as_it_may_be(self, bench: Workbench) -> None:
        """J2.2: live ones, whatever they do; ended and unknown ones are left out of the answer."""
        waiting, paused, running, ended = (bench.put(business_key=f"k{n}")[0] for n in range(4))
        bench.database.run(moves.pause, [paused])
        claims = {claim.job_id: claim for claim in bench.claim()}
        assert bench.succeed(claims[ended], holds_key=True)
        back = claims[waiting]
        assert bench.retry(back)
        ids = [waiting, paused, running, ended, new_job().id]
        moved = bench.database.run(moves.cancel, ids)
        assert {job.job_id: job.left for job in moved.ended} == {
            waiting: S.PENDING,
            paused: S.PAUSED,
            running: S.RUNNING,
        }
        assert [bench.job(job).status for job in ids[:4]] == [S.CANCELED, S.CANCELED, S.CANCELED, S.SUCCEEDED]
        assert bench.outcomes(running) == [(1, "canceled")]
        assert not bench.succeed(claims[running])
        assert [bench.holder(f"k{n}") for n in range(4)] == [None] * 4
        assert bench.database.run(moves.cancel, ids).ended == []

    def test_a_paused_job_is_not_claimed_and_is_resumed_unchanged(self, bench: Workbench) -> None:
        """J2.3: also a dead letter."""
        failed = bench.claimed_job()
        assert bench.fail(failed)
        (waiting,) = bench.put()
        both = [failed.job_id, waiting]
        for _ in range(2):
            assert len(bench.database.run(moves.pause, both)) == 2
        assert bench.claim() == []
        assert [bench.job(job).paused_from for job in both] == [S.FAILED, S.PENDING]
        assert bench.database.run(moves.retry, both).ended == []
        assert len(bench.database.run(moves.resume, both)) == 2
        assert bench.database.run(moves.resume, both) == []
        assert [bench.job(job).status for job in both] == [S.FAILED, S.PENDING]

    def test_a_revived_job_starts_over_with_a_higher_fence(self, bench: Workbench) -> None:
        """J2.4: attempts and crashes 0, due now; a late write of an earlier claim is refused."""
        claim = bench.claimed_job(business_key="order:7")
        assert bench.fail(claim, holds_key=True)
        bench.clock.advance(60)
        (job,) = bench.database.run(moves.retry, [claim.job_id]).ended
        assert (job.left, job.status) == (S.FAILED, S.PENDING)
        assert bench.holder("order:7") == Holder(claim.job_id, "PENDING")
        seen = bench.job(claim.job_id)
        assert (seen.status, seen.attempts, seen.crash_count, seen.error) == (S.PENDING, 0, 0, None)
        assert seen.due_at == bench.clock.now()
        assert bench.holder("order:7") == Holder(claim.job_id, "PENDING")
        (again,) = bench.claim()
        assert again.fence > claim.fence
        assert not bench.succeed(claim)
        assert bench.succeed(again)

    def test_reviving_is_all_or_nothing(self, bench: Workbench) -> None:
        """J2.4: a business key that another job holds, or that two of them need, refuses all of them."""
        for _ in range(2):
            assert bench.fail(bench.claimed_job(business_key="order:7"), holds_key=True)
        failed = [bench.claimed_job(business_key="order:8")]
        assert bench.fail(failed[0], holds_key=True)
        found = bench.database.read(search.find_ids, search.Filters(status=S.FAILED), None, 10)
        assert len(found.ids) == 3
        with pytest.raises(DuplicateBusinessKeyError, match="order:7"):
            bench.database.run(moves.retry, found.ids)
        assert {bench.job(job).status for job in found.ids} == {S.FAILED}
        assert bench.holder("order:8") is None

    def test_racing_cancels_move_a_job_once(self, bench: Workbench) -> None:
        """J2.1: compare and set."""
        for _ in range(RACERS):
            (job,) = bench.put()
            answers = at_once(*[lambda job=job: bench.database.run(moves.cancel, [job])] * RACERS)
            assert sorted(len(answer.ended) for answer in answers) == [0] * (RACERS - 1) + [1]

    def test_a_job_is_replaced_in_one_step(self, bench: Workbench) -> None:
        """J2.4: the successor may take the key of the one it replaces; what has ended or never was is an error."""
        (old,) = bench.put(business_key="order:7")
        new = new_job(business_key="order:7", queue="fresh")
        replaced = bench.database.run(replacement.replace, old, new)
        assert ([job.job_id for job in replaced.old.ended], replaced.new) == ([old], SubmittedJob(new.id))
        assert bench.holder("order:7") == Holder(new.id, "PENDING")
        assert (bench.job(old).status, str(bench.job(old).superseded_by)) == (S.CANCELED, new.id)
        assert [claim.job_id for claim in bench.claim()] == [new.id]
        for wrong, error in ((old, JobStateError), (new.id, JobStateError), (new_job().id, JobNotFoundError)):
            with pytest.raises(error):
                bench.database.run(replacement.replace, wrong, new_job())
