"""Submission: what is stored, whole units or nothing, and values that the database refuses."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

from windlass.domain.admission import Holder
from windlass.domain.clock import from_micros
from windlass.domain.identity import new_job_ids
from windlass.domain.job import Conflict, NewJob, SubmittedJob
from windlass.domain.states import JobStatus
from windlass.domain.tags import tags_of
from windlass.stores.database import StoreDataError
from windlass.stores.plans import jobs
from windlass.testing.contract.workbench import SECOND, StoreContract, Workbench, at_once, new_job

AWKWARD = [
    "",
    "plain",
    "quote \" and 'single'",
    "back\\slash \\N \\t",
    "tab\tline\nreturn\rform\fend",
    "braces {a,b} NULL null",
    "percent % %s %(x)s :name {now}",
    "Grüße 漢字 🪝",
    '[["\\u0000 in JSON"], {"k": "\\\\"}]',
]
"""Texts that could break array literals, COPY lines and placeholders."""

MANY = 120
"""More rows than any dialect sends one by one."""


class SubmissionContract(StoreContract):
    """What a store does with submitted units."""

    @pytest.mark.parametrize("copies", [1, MANY // len(AWKWARD)])
    def test_every_field_is_read_as_it_was_written(self, bench: Workbench, copies: int) -> None:
        """J1.1: a job is a stored call, whatever characters its parts are made of, one by one and in bulk."""
        given = [
            new_job(
                args=text,
                options="{}",
                params=f'{{"text":"{index}"}}',
                correlation_id=text,
                target=f"shop:{index}",
                tags=(f"tag-{index}", "ü\\"),
                business_key=f"business {index} {copy} {text}",
                idempotency_key=f"{text} {index} {copy}",
            )
            for copy in range(copies)
            for index, text in enumerate(AWKWARD)
        ]
        bench.submit(given)
        for job in given[-len(AWKWARD) :]:
            stored = bench.job(job.id)
            assert (stored.args, stored.target, stored.tags) == ((job.args,), job.target, tags_of(job.tags))
            assert stored.params == {"text": job.target.removeprefix("shop:")}
            assert (stored.correlation_id, stored.business_key) == (job.correlation_id, job.business_key)
            assert stored.idempotency_key == job.idempotency_key

    def test_the_claimed_payload_is_what_was_submitted(self, bench: Workbench) -> None:
        """J1.1: what a worker loads is what a client stored."""
        given = {(job := new_job(args=text, params=text, tags=("a", "b"), options="{}")).id: job for text in AWKWARD}
        bench.submit(list(given.values()))
        bench.claim()
        loaded = bench.database.run(jobs.load, list(given))
        assert loaded.keys() == given.keys()
        for job_id, payload in loaded.items():
            job = given[job_id]
            assert (payload.args, payload.params, payload.tags) == (job.args, job.params, job.tags)
            assert payload.created_at == bench.clock.micros()

    def test_ids_are_the_clients_and_their_order_is_the_order_of_a_bulk_enqueue(self, bench: Workbench) -> None:
        """J1.2: ids are made by the client, so the order in which they were made is the order of equal jobs."""
        ids = new_job_ids(MANY)
        (submitted,) = bench.submit([new_job(id=job_id) for job_id in ids])
        assert submitted == [SubmittedJob(job_id) for job_id in ids]
        assert [claim.job_id for claim in bench.claim()] == ids

    @pytest.mark.parametrize("copies", [1, MANY])
    def test_a_job_is_due_at_its_time_or_after_its_delay(self, bench: Workbench, copies: int) -> None:
        """J3.1: a given due time is kept; a delay is added to the clock of the store."""
        now = bench.clock.micros()
        given = [new_job(due_at=now + 7) for _ in range(copies)] + [new_job(delay_us=9) for _ in range(copies)]
        bench.submit(given)
        assert bench.job(given[0].id).due_at == from_micros(now + 7)
        assert bench.job(given[-1].id).due_at == from_micros(now + 9)
        assert bench.job(given[0].id).created_at == from_micros(now)

    def test_a_new_job_is_pending_and_was_never_started(self, bench: Workbench) -> None:
        """J2.1: every life begins in PENDING."""
        (job_id,) = bench.put()
        job = bench.job(job_id)
        assert (job.status, job.attempts, job.crash_count, job.node) == (JobStatus.PENDING, 0, 0, None)
        assert bench.history(job_id) == []

    def test_a_unit_with_a_conflict_stores_nothing(self, bench: Workbench) -> None:
        """J1.5: a unit is stored whole or not at all, keys and tags included."""
        (holder,) = bench.put(business_key="order:1")
        lost = new_job(idempotency_key="first", business_key="order:2", tags=("t",))
        (answer,) = bench.submit([lost, new_job(), new_job(business_key="order:1")])
        assert answer == Conflict("order:1", holder)
        assert not bench.exists(lost.id)
        assert bench.first_job("first") is None
        assert bench.holder("order:2") is None
        assert [claim.job_id for claim in bench.claim()] == [holder]

    def test_a_refused_unit_does_not_undo_what_it_would_have_replaced(self, bench: Workbench) -> None:
        """J1.5: a unit that first replaces and then conflicts leaves the first holder alone."""
        (first, second) = bench.put(business_key="order:1") + bench.put(business_key="order:2")
        unit = [new_job(business_key="order:1", on_conflict="replace"), new_job(business_key="order:2")]
        assert bench.submit(unit) == [Conflict("order:2", second)]
        assert bench.job(first).status is JobStatus.PENDING
        assert bench.holder("order:1") == Holder(first, "PENDING")

    def test_units_of_one_transaction_succeed_or_fail_independently(self, bench: Workbench) -> None:
        """J1.5: callers share a commit, and each gets its own answer."""
        (holder,) = bench.put(business_key="order:1")
        refused, fine = new_job(business_key="order:1"), new_job(business_key="order:2")
        answers = bench.submit([refused], [fine], [new_job()])
        assert answers[0] == Conflict("order:1", holder)
        assert answers[1] == [SubmittedJob(fine.id)]
        assert bench.job(fine.id).status is JobStatus.PENDING
        assert not bench.exists(refused.id)

    def test_an_empty_unit_is_answered_with_nothing(self, bench: Workbench) -> None:
        """J1.2: enqueueing an empty list is no error."""
        assert bench.submit([]) == [[]]

    @pytest.mark.parametrize(
        "bad",
        [{"args": None}, {"args": "lone surrogate \udc80"}, {"business_key": "lone \udc80"}, {"args": "a \0 b"}],
        ids=["missing", "not text", "not text in a key", "NUL"],
    )
    @pytest.mark.parametrize("copies", [1, MANY])
    def test_values_the_database_refuses_are_a_data_error(
        self, bench: Workbench, bad: dict[str, Any], copies: int
    ) -> None:
        """J1.1: refused values differ from a lost database; nothing is stored, and the store stays usable."""
        good = [new_job() for _ in range(copies)]
        with pytest.raises(StoreDataError):
            bench.submit([*good, new_job(**bad)])
        assert not bench.exists(good[0].id)
        assert bench.submit_one(good[0]) == SubmittedJob(good[0].id)

    def test_callers_at_once_do_not_share_an_error(self, bench: Workbench) -> None:
        """J1.5: what is refused is undone alone, also when it shares a commit."""
        good = [new_job() for _ in range(5)]
        actions = [partial(bench.submit_one, job) for job in good]
        *submitted, refused = at_once(*actions, partial(_refused, bench, new_job(args="\udc80")))
        assert submitted == [SubmittedJob(job.id) for job in good]
        assert refused
        assert {claim.job_id for claim in bench.claim()} == {job.id for job in good}

    def test_an_id_that_is_taken_is_a_data_error(self, bench: Workbench) -> None:
        """J1.2: an id stands for one job."""
        (taken,) = bench.put(args="[[1],{}]")
        with pytest.raises(StoreDataError):
            bench.submit([new_job(id=taken, args="[[2],{}]")])
        assert bench.job(taken).args == ("[[1],{}]",)

    def test_async_callers_get_the_same_answers(self, bench: Workbench) -> None:
        """J1.5: one plan serves sync and async callers."""
        (holder,) = bench.put(business_key="order:1")
        fine, refused = new_job(delay_us=SECOND), new_job(business_key="order:1")

        async def submit() -> Any:
            try:
                return (await bench.database.arun(jobs.submit, [[fine], [refused]], ["default"])).answers
            finally:
                await bench.database.aclose_loop()

        assert asyncio.run(submit()) == [[SubmittedJob(fine.id)], Conflict("order:1", holder)]
        assert bench.job(fine.id).due_at == from_micros(bench.clock.micros() + SECOND)


def _refused(bench: Workbench, job: NewJob) -> bool:
    with pytest.raises(StoreDataError):
        bench.submit([job])
    return True
