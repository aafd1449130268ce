"""Completion: every write is guarded by its fence, what it stores, and repeated writes whose commit was not seen."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from windlass.domain.admission import Holder
from windlass.domain.clock import from_micros
from windlass.domain.job import Claim
from windlass.domain.states import JobStatus
from windlass.domain.transition import (
    Failure,
    Times,
    Transition,
    dead_letter,
    given_up,
    lost,
    passed_over,
    released,
    retry_at,
    snoozed,
    succeeded,
)
from windlass.stores.database import StoreDataError
from windlass.testing.contract.workbench import FAILURE, NODE, SECOND, StoreContract, Workbench, new_job

Ending = Callable[[Claim, Times], Transition]

ENDINGS: dict[str, Ending] = {
    "succeeded": lambda claim, times: succeeded(claim, times, '"x"', holds_key=True),
    "retried": lambda claim, times: retry_at(claim, times, FAILURE, SECOND),
    "failed": lambda claim, times: dead_letter(claim, times, FAILURE, "retry_exhausted", holds_key=True),
    "released": released,
    "snoozed": lambda claim, times: snoozed(claim, times, SECOND),
    "passed_over": lambda claim, times: passed_over(claim, times, "target:shop:charge"),
    "lost": lambda claim, times: lost(claim, times, FAILURE),
}
STATUS_AFTER = {"succeeded": JobStatus.SUCCEEDED, "failed": JobStatus.FAILED}
COUNTED = {"succeeded", "retried", "failed"}

every_ending = pytest.mark.parametrize("outcome", ENDINGS)


class CompletionContract(StoreContract):
    """What a store does with the transitions of claimed jobs."""

    # ------------------------------------------------------------------ the guard

    @every_ending
    def test_the_holder_of_the_fence_writes_once(self, bench: Workbench, outcome: str) -> None:
        """J2.1: won by the holder; the same write again is refused, says so, and changes nothing."""
        claim = bench.claimed_job(business_key="order:7")
        transition = ENDINGS[outcome](claim, bench.times())
        assert bench.apply(transition) == [True]
        after = bench.seen(claim.job_id)
        assert after[0].status is STATUS_AFTER.get(outcome, JobStatus.PENDING)
        assert bench.apply(transition) == [False]
        assert bench.seen(claim.job_id) == after

    @every_ending
    def test_a_write_with_an_old_fence_changes_nothing(self, bench: Workbench, outcome: str) -> None:
        """J2.1: an earlier holder of the job is refused, and the key stays held."""
        old = bench.claimed_job(business_key="order:7")
        bench.retry(old)
        (current,) = bench.claim()
        before = bench.seen(old.job_id)
        assert bench.apply(ENDINGS[outcome](old, bench.times())) == [False]
        assert bench.seen(old.job_id) == before
        assert bench.holder("order:7") == Holder(old.job_id, "RUNNING")
        assert bench.succeed(current, holds_key=True)

    @every_ending
    def test_an_old_and_the_current_holder_may_share_a_flush(self, bench: Workbench, outcome: str) -> None:
        """J2.1: each transition is answered by its own fence, also when both are of one job."""
        old = bench.claimed_job()
        bench.retry(old)
        (current,) = bench.claim()
        times = bench.times()
        pair = [ENDINGS[outcome](old, times), ENDINGS[outcome](current, times)]
        assert bench.apply(*pair) == [False, True]
        assert bench.outcomes(old.job_id) == [(1, "retried"), (2, outcome)]
        assert bench.job(old.job_id).attempts == (2 if outcome in COUNTED else 1)

    @every_ending
    def test_a_write_to_an_unknown_job_is_refused(self, bench: Workbench, outcome: str) -> None:
        """J2.1: a job deleted by hand takes no writes."""
        claim = bench.claimed_job()
        stranger = claim._replace(job_id=new_job().id)
        assert bench.apply(ENDINGS[outcome](stranger, bench.times())) == [False]
        assert not bench.exists(stranger.job_id)

    def test_answers_come_in_the_order_of_the_transitions(self, bench: Workbench) -> None:
        """J4.3: many jobs share a commit, each guarded by its own fence."""
        bench.put(60)
        claims = bench.claim()
        kinds = [list(ENDINGS)[number % len(ENDINGS)] for number in range(len(claims))]
        stale = [number % 5 == 0 for number in range(len(claims))]
        fences = [claim._replace(fence=claim.fence - late) for claim, late in zip(claims, stale, strict=True)]
        times = bench.times()
        answers = bench.apply(*[ENDINGS[kind](claim, times) for kind, claim in zip(kinds, fences, strict=True)])
        assert answers == [not late for late in stale]
        for claim, kind, late in zip(claims, kinds, stale, strict=True):
            assert bench.outcomes(claim.job_id) == ([] if late else [(1, kind)])
            expected = JobStatus.RUNNING if late else STATUS_AFTER.get(kind, JobStatus.PENDING)
            assert bench.job(claim.job_id).status is expected

    def test_nothing_to_write_is_no_error(self, bench: Workbench) -> None:
        """J4.3: an empty flush answers nothing."""
        assert bench.apply() == []
        assert bench.apply(retried=True) == []

    # ------------------------------------------------------------------ what is left behind

    def test_success_writes_result_times_and_history(self, bench: Workbench) -> None:
        """J4.3: terminal state, result, timings and history row are one write."""
        claim = bench.claimed_job()
        start = bench.clock.micros()
        assert bench.apply(succeeded(claim, Times(start + 1000, start + 4000, 1000), '{"a":1}', holds_key=False))
        job, (attempt,) = bench.seen(claim.job_id)
        assert (job.status, job.result, job.attempts, job.node) == (JobStatus.SUCCEEDED, '{"a":1}', 1, NODE)
        assert (job.started_at, job.finished_at) == (from_micros(start + 1000), from_micros(start + 4000))
        assert (job.wait_ms, job.run_ms, job.error, job.reason) == (1, 3, None, None)
        assert (attempt.number, attempt.node, attempt.outcome) == (1, NODE, "succeeded")
        assert (attempt.started_at, attempt.ended_at) == (job.started_at, job.finished_at)

    def test_failure_writes_the_error_its_class_and_the_reason(self, bench: Workbench) -> None:
        """J2.5: history keeps error class, message and traceback tail."""
        claim = bench.claimed_job()
        assert bench.fail(claim)
        job, (attempt,) = bench.seen(claim.job_id)
        assert (job.status, job.reason, job.attempts) == (JobStatus.FAILED, "retry_exhausted", 1)
        assert (job.error, job.error_class) == (FAILURE.error, FAILURE.error_class)
        assert (attempt.error, attempt.error_class, attempt.traceback) == FAILURE[:3]

    def test_a_failure_before_the_body_was_entered_uses_up_no_attempt(self, bench: Workbench) -> None:
        """J2.5: `attempts` counts starts that counted."""
        claim = bench.claimed_job()
        refused = dead_letter(claim, bench.times(), FAILURE, "target_not_allowed", holds_key=False, counted=False)
        assert bench.apply(refused) == [True]
        assert bench.job(claim.job_id).attempts == 0
        assert bench.outcomes(claim.job_id) == [(1, "failed")]

    def test_attempts_count_what_counted_and_history_keeps_it_all(self, bench: Workbench) -> None:
        """J2.5: retries count; releases, snoozes and lost nodes leave a row and spend nothing."""
        bench.register("doomed")
        (job_id,) = bench.put()
        seen = []
        for outcome in ("retried", "released", "snoozed", "lost", "retried", "succeeded"):
            (claim,) = bench.claim(node="doomed" if outcome == "lost" else NODE)
            if outcome == "lost":
                bench.lose("doomed", alive=[NODE])
                bench.recover()
            else:
                assert bench.apply(ENDINGS[outcome](claim, bench.times())) == [True]
            bench.clock.advance(1)
            seen.append(bench.job(job_id).attempts)
        assert seen == [1, 1, 1, 1, 2, 3]
        rows = [(1, "retried"), (2, "released"), (2, "snoozed"), (2, "lost"), (2, "retried"), (3, "succeeded")]
        assert bench.outcomes(job_id) == rows
        assert bench.job(job_id).crash_count == 1

    def test_a_died_process_is_charged_to_the_crash_budget(self, bench: Workbench) -> None:
        """J7.4: crash_count grows with each, also with the last; no attempt is spent; at the end the key is free."""
        (job_id,) = bench.put(business_key="order:7")
        bench.put(2)
        for crashes in (1, 2):
            claims = {claim.job_id: claim for claim in bench.claim()}
            endings = [lost(claims.pop(job_id), bench.times(), FAILURE)]
            endings += [released(claim, bench.times()) for claim in claims.values()]
            assert bench.apply(*endings) == [True] * 3
            assert bench.job(job_id).crash_count == crashes
        claims = {claim.job_id: claim for claim in bench.claim()}
        endings = [given_up(claims.pop(job_id), bench.times(), FAILURE, holds_key=True)]
        endings += [succeeded(claim, bench.times(), None, holds_key=False) for claim in claims.values()]
        assert bench.apply(*endings) == [True] * 3
        job, history = bench.seen(job_id)
        assert (job.status, job.reason, job.crash_count) == (JobStatus.FAILED, "worker_lost", 3)
        assert (job.attempts, job.error) == (0, FAILURE.error)
        assert [(row.number, row.outcome) for row in history] == [(1, "lost")] * 3
        assert bench.holder("order:7") is None
        assert {bench.job(other).crash_count for other in claims} == {0}

    def test_the_last_crash_is_charged_once_although_its_commit_was_lost(self, bench: Workbench) -> None:
        """J7.4, J7.8: an attempt whose answer was lost is looked up before it is written again."""
        claim = bench.claimed_job(business_key="order:7")
        last = given_up(claim, bench.times(), FAILURE, holds_key=True)
        assert bench.apply(last) == [True]
        assert bench.apply(last, retried=True) == [True]
        assert bench.apply(last) == [False]
        assert bench.job(claim.job_id).crash_count == 1

    def test_the_latest_error_is_visible_until_success_clears_it(self, bench: Workbench) -> None:
        """J2.5: a job that waits for its retry shows its error; success clears it, history keeps it."""
        claim = bench.claimed_job()
        bench.retry(claim)
        waiting = bench.job(claim.job_id)
        assert (waiting.error, waiting.error_class) == (FAILURE.error, FAILURE.error_class)
        (again,) = bench.claim()
        assert bench.job(claim.job_id).error == FAILURE.error
        bench.succeed(again)
        assert bench.job(claim.job_id).error is None
        assert bench.history(claim.job_id)[0].error == FAILURE.error

    @every_ending
    def test_a_requeued_job_is_due_when_it_should_be(self, bench: Workbench, outcome: str) -> None:
        """J2.5, J3.3: retries and snoozes wait for their delay; released jobs keep their due time."""
        claim = bench.claimed_job()
        bench.clock.advance(60)
        bench.apply(ENDINGS[outcome](claim, bench.times()))
        delayed = bench.clock.micros() + SECOND if outcome in {"retried", "snoozed"} else claim.due_at
        job = bench.job(claim.job_id)
        assert job.due_at == from_micros(delayed)
        assert job.attempts == (1 if outcome in COUNTED else 0)
        if outcome not in STATUS_AFTER:
            assert (job.node, job.picked_at) == (None, None)

    # ------------------------------------------------------------------ commits whose answer was lost

    @every_ending
    def test_an_attempt_whose_commit_was_lost_is_not_written_twice(self, bench: Workbench, outcome: str) -> None:
        """J7.8: after a cut connection, what the history holds already was won."""
        claim = bench.claimed_job()
        transition = ENDINGS[outcome](claim, bench.times())
        bench.apply(transition)
        after = bench.seen(claim.job_id)
        assert bench.apply(transition, retried=True) == [True]
        assert bench.seen(claim.job_id) == after

    @every_ending
    def test_an_attempt_that_was_never_committed_is_written_now(self, bench: Workbench, outcome: str) -> None:
        """J7.8: after a cut connection, what the history lacks is written, once."""
        first, second = bench.put(2)
        claims = bench.claim()
        times = bench.times()
        bench.apply(ENDINGS[outcome](claims[0], times))
        assert bench.apply(*[ENDINGS[outcome](claim, times) for claim in claims], retried=True) == [True, True]
        assert bench.outcomes(first) == bench.outcomes(second) == [(1, outcome)]

    @every_ending
    def test_an_interrupted_attempt_that_was_recovered_is_refused(self, bench: Workbench, outcome: str) -> None:
        """J7.3: the history row of a lost attempt is no proof that its owner's write was committed."""
        claim = bench.claimed_job()
        bench.lose(NODE)
        bench.recover()
        before = bench.seen(claim.job_id)
        assert bench.apply(ENDINGS[outcome](claim, bench.times()), retried=True) == [False]
        assert bench.seen(claim.job_id) == before

    # ------------------------------------------------------------------ refused values

    @pytest.mark.parametrize("outcome", ["succeeded", "retried", "failed"])
    def test_a_refused_value_fails_its_flush_only(self, bench: Workbench, outcome: str) -> None:
        """J4.3: nothing of that flush is written; without the bad row it is."""
        bench.put(3)
        claims = bench.claim()
        fine = [succeeded(claim, bench.times(), '"x"', holds_key=False) for claim in claims]
        bad = ENDINGS[outcome](claims[1], bench.times())
        bad = bad._replace(result="\udc80") if bad.failure is None else bad._replace(failure=Failure("\udc80", "E"))
        with pytest.raises(StoreDataError):
            bench.apply(fine[0], bad, fine[2])
        assert {bench.job(transition.job_id).status for transition in fine} == {JobStatus.RUNNING}
        assert bench.apply(*fine) == [True, True, True]

    def test_awkward_texts_survive_in_results_and_errors(self, bench: Workbench) -> None:
        """J2.5: results, messages and tracebacks are stored as they are, alone and in a mixed flush."""
        text = 'a "quoted" \\ back\\\\slash, {braces}, NULL\n\ttab % %s :name 漢字 🪝'
        bench.put(3)
        first, second, third = bench.claim()
        failure = Failure(text, "E" + text, text)
        times = bench.times()
        bench.apply(succeeded(first, times, text, holds_key=False))
        endings = [
            succeeded(second, times, text, holds_key=False),
            dead_letter(third, times, failure, text, holds_key=False),
        ]
        assert bench.apply(*endings) == [True, True]
        assert bench.job(first.job_id).result == bench.job(second.job_id).result == text
        failed, (attempt,) = bench.seen(third.job_id)
        assert (failed.error, failed.error_class, failed.reason) == (text, "E" + text, text)
        assert (attempt.error, attempt.traceback) == (text, text)
