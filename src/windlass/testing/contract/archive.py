"""The archive: ended jobs move there as a whole, are read as before, and dead letters can be revived from it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest

from windlass.domain.identity import FIRST_ID, LAST_ID
from windlass.domain.states import JobStatus
from windlass.errors import DuplicateBusinessKeyError, JobStateError
from windlass.stores.dialect import Dialect
from windlass.stores.plan import SCRIPT, Plan, Step
from windlass.stores.plans import archive, moves, reads, replacement, search
from windlass.testing.contract.workbench import SECOND, StoreContract, Workbench, at_once, new_job

S = JobStatus
DAY = 86_400
EVERY_WAY = ("succeeded", "failed", "canceled")


class ArchiveContract(StoreContract):
    """Archiving, reading across both tables, and reviving."""

    # ------------------------------------------------------------------ moving

    def test_archived_jobs_are_read_as_they_were(self, bench: Workbench) -> None:
        """J7.7: only what has ended moves, whole or not at all."""
        jobs = ended_jobs(bench)
        (live,) = bench.put()
        before = [bench.seen(job) for job in jobs.values()]
        outcomes = bench.database.read(reads.outcomes, list(jobs.values()))
        assert move(bench, [*jobs.values(), live, new_job().id]) == len(jobs)
        assert move(bench, [*jobs.values(), live]) == 0
        assert [bench.seen(job) for job in jobs.values()] == before
        assert sorted(bench.database.read(reads.outcomes, list(jobs.values()))) == sorted(outcomes)
        assert bench.job(live).status is S.PENDING
        assert [bench.database.read(_rows_of, job) for job in jobs.values()] == [0] * len(jobs)

    def test_any_number_of_jobs_takes_the_same_statements(self, bench: Workbench) -> None:
        """J7.7: bounded batches, none of them with a statement per job."""
        bench.put(70, tags=("t",))
        ids = [claim.job_id for claim in bench.claim() if bench.succeed(claim)]
        taken = [steps_of(bench, archive.move, part) for part in (ids[:1], ids[1:])]
        assert taken[0] == taken[1] <= 12
        assert [bench.job(job).status for job in ids] == [S.SUCCEEDED] * 70

    def test_jobs_that_ended_recently_are_not_archived(self, bench: Workbench) -> None:
        """J7.7: by the store's clock, and by when it ended, not by when it was made."""
        jobs = ended_jobs(bench)
        bench.clock.advance(DAY)
        (late,) = ended_jobs(bench, only=("succeeded",)).values()
        (waiting,) = bench.put(delay_us=2 * DAY * SECOND)
        week = 7 * DAY * SECOND
        bench.clock.advance(7 * DAY - 1 - DAY)
        assert old(bench, week) == []
        assert move(bench, list(jobs.values()), week) == 0
        bench.clock.advance(1)
        assert old(bench, week) == sorted(jobs.values())
        assert old(bench, 0) == sorted([*jobs.values(), late])
        assert move(bench, [*jobs.values(), late, waiting], week) == len(jobs)
        assert old(bench, week) == []

    def test_old_jobs_are_found_whatever_is_between_them(
        self, bench: Workbench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """J7.7: made long ago and ended lately, or held by hand: passed over, in bounded steps."""
        monkeypatch.setattr(archive, "WINDOW", 4)
        monkeypatch.setattr(archive, "MOST_LOOKED_AT", 8)
        bench.put(40)
        claims = {claim.job_id: claim for claim in bench.claim()}
        ids = sorted(claims)
        early, held, late = ids[::7], ids[1], [job for job in ids if job not in ids[::7]]
        for job in [*early, held]:
            bench.fail(claims[job])
        bench.database.run(moves.pause, [held])
        bench.clock.advance(DAY)
        for job in late:
            bench.succeed(claims[job])
        assert old(bench, DAY * SECOND) == early
        assert move(bench, ids, DAY * SECOND) == len(early)
        assert old(bench, DAY * SECOND) == []
        assert old(bench, 0) == [job for job in late if job != held]
        assert bench.job(held).status is S.PAUSED

    def test_the_order_of_ids_bounds_the_search(self, bench: Workbench) -> None:
        """J7.7: a job cannot have ended before its id was made; ids of the far future are left for then."""
        (job,) = ended_jobs(bench, only=("succeeded",)).values()
        bench.clock.advance(DAY)
        assert bench.database.read(archive.old_jobs, DAY * SECOND, FIRST_ID, 10).ids == [job]
        (early,) = ended_jobs(bench, only=("succeeded",), id="ffffffff-0000-7000-8000-000000000000").values()
        bench.clock.advance(DAY)
        assert bench.database.read(archive.old_jobs, DAY * SECOND, FIRST_ID, 10).ids == [job]
        assert old(bench, DAY * SECOND) == [job, early]

    # ------------------------------------------------------------------ looking

    def test_find_reads_live_and_archived_jobs(self, bench: Workbench) -> None:
        """J7.7: by every filter there is, page by page, in one order."""
        jobs = [ended_jobs(bench, tags=("t",), business_key="k", queue="q", target="a:b") for _ in range(4)]
        filters = {"tag": "t", "business_key": "k", "queue": "q", "target": "a:b"}
        asked = [search.Filters(**{name: value}) for name, value in filters.items()]  # type: ignore[arg-type]
        asked += [search.Filters(), search.Filters(**filters)]  # type: ignore[arg-type]
        by_status = dict(zip(EVERY_WAY, (S.SUCCEEDED, S.FAILED, S.CANCELED), strict=True))
        asked += [search.Filters(status=status) for status in by_status.values()]
        before = [pages(bench, each) for each in asked]
        assert [len(ids) for ids in before] == [12] * 6 + [4] * 3
        for part in (jobs[1], jobs[3], jobs[0], jobs[2]):
            move(bench, list(part.values()))
            assert [pages(bench, each) for each in asked] == before

    def test_tags_of_deleted_jobs_find_nothing(self, bench: Workbench) -> None:
        """J7.7: its rows were deleted by hand."""
        jobs = ended_jobs(bench, tags=("t",))
        move(bench, list(jobs.values()))
        bench.script("DELETE FROM windlass_archive WHERE status <> 'FAILED'")
        created = {"created_after": bench.clock.now(), "ids_have_times": False}
        for filters in (search.Filters(tag="t"), search.Filters(tag="t", **created)):  # type: ignore[arg-type]
            assert pages(bench, filters) == [jobs["failed"]]

    def test_keys_of_archived_jobs(self, bench: Workbench) -> None:
        """J1.4, J7.7: the idempotency key stands for its job for ever; the business key is free."""
        (job,) = ended_jobs(bench, only=("succeeded",), idempotency_key="i", business_key="k").values()
        move(bench, [job])
        again = bench.submit_one(new_job(idempotency_key="i"))
        assert (again.job_id, again.duplicate) == (job, True)
        assert bench.submit_one(new_job(business_key="k")).duplicate is False

    def test_a_dead_letter_keeps_its_envelope(self, bench: Workbench) -> None:
        """J7.7, J5.4: its dead letter stays in its table."""
        (job,) = ended_jobs(bench, only=("failed",)).values()
        bench.script("DELETE FROM windlass_dead_letter")
        bench.script(
            "INSERT INTO windlass_dead_letter (job_id, fingerprint, envelope, created_at, hidden, target, queue, "
            "error_class, reason, raised) "
            "SELECT id, 'f', 'all of it', 1, 0, target, queue, 'E', 'x', 0 FROM windlass_done"
        )
        move(bench, [job])
        assert bench.database.run(_kept_letters) == 1

    # ------------------------------------------------------------------ coming back

    def test_an_archived_dead_letter_is_retried_like_any_other(self, bench: Workbench) -> None:
        """J2.4: with its history, its tags and its business key; what succeeded or was canceled is not."""
        jobs = ended_jobs(bench, business_key="k", tags=("t",), idempotency_key=None)
        history = bench.history(jobs["failed"])
        move(bench, list(jobs.values()))
        assert [job.job_id for job in bench.database.run(moves.retry, list(jobs.values())).ended] == [jobs["failed"]]
        job = bench.job(jobs["failed"])
        assert (job.status, job.attempts, job.error) == (S.PENDING, 0, None)
        assert bench.history(jobs["failed"]) == history
        holder = bench.holder("k")
        assert holder is not None
        assert holder.id == jobs["failed"]
        assert len(pages(bench, search.Filters(tag="t"))) == len(jobs)
        assert bench.database.run(moves.retry, list(jobs.values())).ended == []
        (claim,) = bench.claim()
        assert bench.succeed(claim, holds_key=True)
        assert bench.outcomes(jobs["failed"])[-1] == (1, "succeeded")

    def test_a_refused_retry_does_not_change_the_archive(self, bench: Workbench) -> None:
        """J2.4, J1.5: another job holds the key by now."""
        (job,) = ended_jobs(bench, only=("failed",), business_key="k").values()
        move(bench, [job])
        bench.put(business_key="k")
        with pytest.raises(DuplicateBusinessKeyError):
            bench.database.run(moves.retry, [job])
        assert bench.database.read(_rows_of, job) == 0
        assert bench.job(job).status is S.FAILED

    def test_archived_dead_letters_are_paused_and_others_not_steered(self, bench: Workbench) -> None:
        """J2.3, J7.7: held, it is a job among others again, and stays until it is resumed."""
        jobs = ended_jobs(bench)
        move(bench, list(jobs.values()))
        assert bench.database.run(moves.cancel, list(jobs.values())).ended == []
        assert bench.database.run(moves.resume, list(jobs.values())) == []
        assert [job.job_id for job in bench.database.run(moves.pause, list(jobs.values()))] == [jobs["failed"]]
        assert move(bench, list(jobs.values())) == 0
        with pytest.raises(JobStateError, match="has ended"):
            bench.database.run(replacement.replace, jobs["succeeded"], new_job())

    def test_a_retry_and_the_archive_at_once_have_one_winner_at_a_time(self, bench: Workbench) -> None:
        """J2.1, J7.7: the job waits again, and is nowhere else, in any order."""
        for _ in range(6):
            (job,) = ended_jobs(bench, only=("failed",)).values()
            retried, _ = at_once(partial(bench.database.run, moves.retry, [job]), partial(move, bench, [job]))
            assert len(retried.ended) == 1
            assert bench.job(job).status is S.PENDING
            assert bench.database.read(_archived_ids) == []
            bench.database.run(moves.cancel, [job])


def ended_jobs(
    bench: Workbench, only: Sequence[str] = ("succeeded", "failed", "canceled"), **changes: Any
) -> dict[str, str]:
    """Return one job that ended in each of these ways, by name."""
    made = {}
    for way in only:
        (made[way],) = bench.put(**changes)
        if way == "canceled":
            bench.database.run(moves.cancel, [made[way]])
            continue
        claim = next(claim for claim in bench.claim() if claim.job_id == made[way])
        keyed = "business_key" in changes
        assert bench.succeed(claim, holds_key=keyed) if way == "succeeded" else bench.fail(claim, holds_key=keyed)
    return made


def move(bench: Workbench, ids: Sequence[str], age_us: int = 0) -> int:
    """Archive jobs; return how many."""
    return bench.database.run(archive.move, ids, age_us).jobs


def old(bench: Workbench, age_us: int) -> list[str]:
    """Return all that is old enough, as a pass finds it: two at a time."""
    found: list[str] = []
    after: str | None = FIRST_ID
    while after is not None:
        part = bench.database.read(archive.old_jobs, age_us, after, 2, ids_have_times=False)
        found += part.ids
        after = part.next_after
    return found


def pages(bench: Workbench, filters: search.Filters) -> list[str]:
    """Return all matches, three at a time."""
    found: list[str] = []
    before: str | None = None
    while True:
        part = bench.database.read(search.find_ids, filters, before, 3)
        found += part.ids
        before = part.next_before
        if before is None:
            return found


def steps_of(bench: Workbench, plan: Any, *args: Any) -> int:
    """Run a plan; return how many statements it took."""
    count = 0

    def counted(dialect: Dialect) -> Plan[Any]:
        nonlocal count
        inner = plan(dialect, *args)
        answer: Any = None
        while True:
            try:
                step = inner.send(answer)
            except StopIteration as stop:
                return stop.value
            count += 1 if step.rows is None else len(step.rows)
            answer = yield step

    bench.database.run(counted)
    return count


def _rows_of(dialect: Dialect, job_id: str) -> Plan[int]:
    """Return how many rows of the working tables belong to a job."""
    chosen = {"ids": dialect.ids([job_id])}
    jobs = yield Step("get_jobs", chosen)
    attempts = yield Step("histories", chosen)
    return len(jobs) + len(attempts)


def _archived_ids(dialect: Dialect) -> Plan[list[str]]:
    del dialect
    rows = yield Step("find_archived", {"before": LAST_ID}, literals={"window": 100})
    return [row[0] for row in rows]


def _kept_letters(dialect: Dialect) -> Plan[int]:
    del dialect
    count = yield Step(SCRIPT, {"text": "DELETE FROM windlass_dead_letter WHERE envelope = 'all of it'"})
    return int(count[0])
