"""Reports: progress and log lines of running jobs, guarded by their claims."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from windlass.domain.job import Claim
from windlass.domain.progress import Progress
from windlass.stores.plans import archive, progress_reports
from windlass.stores.plans.progress_reports import LineRow, ProgressRow, ReportBatch
from windlass.testing.contract.workbench import StoreContract, Workbench, new_job

FIRST = (-1, 0)
"""Before all lines."""


class ProgressReportsContract(StoreContract):
    """Progress and log lines."""

    def test_the_latest_progress_counts(self, bench: Workbench) -> None:
        """J4.4: with its message and time."""
        claim = bench.claimed_job()
        assert bench.job(claim.job_id).progress is None
        _report(bench, claim, 1, total=10)
        bench.clock.advance(1)
        _report(bench, claim, 2.5, total=10, message="at it")
        assert bench.job(claim.job_id).progress == Progress(
            done=2.5, total=10, message="at it", at=bench.clock.now(), percent=25.0
        )

    def test_reports_change_nothing_else(self, bench: Workbench) -> None:
        """J4.1: the job's own rows are not touched, so the claim's outcome is still its own."""
        claim = bench.claimed_job()
        before = bench.job(claim.job_id)
        _report(bench, claim, 1)
        bench.database.run(progress_reports.save, ReportBatch([], [_line(claim, 1)]))
        assert replace(bench.job(claim.job_id), progress=None) == before
        assert bench.succeed(claim)
        assert _done(bench, claim) == 1

    def test_a_lost_claim_writes_no_reports(self, bench: Workbench) -> None:
        """J4.4: neither before the next attempt has reported, nor after."""
        stale = bench.claimed_job()
        _report(bench, stale, 8)
        bench.retry(stale)
        assert _done(bench, stale) is None, "it starts over"
        (claim,) = bench.claim()
        _report(bench, stale, 9)
        assert _done(bench, stale) is None
        _report(bench, claim, 1)
        _report(bench, stale, 10)
        assert _done(bench, stale) == 1

    def test_an_ended_job_keeps_its_reports(self, bench: Workbench) -> None:
        """J4.4: and takes no more."""
        won, lost = bench.claimed_job(), bench.claimed_job()
        for claim in (won, lost):
            _report(bench, claim, 3, total=4)
        bench.succeed(won)
        bench.fail(lost)
        for claim in (won, lost):
            _report(bench, claim, 4, total=4)
            assert _done(bench, claim) == 3

    def test_progress_of_many_jobs_is_saved_at_once(self, bench: Workbench) -> None:
        """J4.4: reports that are refused do not keep others from being saved."""
        bench.put(20)
        claims = bench.claim()
        bench.succeed(claims[7])
        rows = [_progress(bench, claim, number) for number, claim in enumerate(claims)]
        bench.database.run(progress_reports.save, ReportBatch(rows, []))
        expected = [None if number == 7 else number for number in range(20)]
        assert [_done(bench, claim) for claim in claims] == expected

    def test_lines_are_returned_attempt_by_attempt(self, bench: Workbench) -> None:
        """J4.4: by claim and number, whatever the order they were saved in."""
        first = bench.claimed_job()
        bench.retry(first)
        (second,) = bench.claim()
        saved = [_line(second, 1), _line(first, 2), _line(first, 1)]
        bench.database.run(progress_reports.save, ReportBatch([], saved))
        found = bench.database.read(progress_reports.lines, first.job_id, FIRST, 10)
        assert found == [saved[2], saved[1], saved[0]]
        assert [row.attempt for row in found] == [1, 1, 2]

    def test_lines_are_returned_after_a_position(self, bench: Workbench) -> None:
        """Operations: `job tail` asks for what is behind the last line it has."""
        claim = bench.claimed_job()
        lines = [_line(claim, number) for number in range(1, 6)]
        bench.database.run(progress_reports.save, ReportBatch([], lines))
        assert bench.database.read(progress_reports.lines, claim.job_id, FIRST, 2) == lines[:2]
        assert bench.database.read(progress_reports.lines, claim.job_id, (claim.fence, 2), 10) == lines[2:]
        assert bench.database.read(progress_reports.lines, claim.job_id, (claim.fence, 5), 10) == []

    def test_lines_saved_twice_are_there_once(self, bench: Workbench) -> None:
        """J4.4: after a commit whose answer was lost, the same lines are saved again."""
        claim = bench.claimed_job()
        for _ in range(2):
            bench.database.run(progress_reports.save, ReportBatch([], [_line(claim, 1)]))
        assert bench.database.read(progress_reports.lines, claim.job_id, FIRST, 10) == [_line(claim, 1)]

    def test_an_unknown_job_has_no_lines(self, bench: Workbench) -> None:
        """J4.4: late lines of a job that is gone are not kept for ever."""
        claim = bench.claimed_job()._replace(job_id=new_job().id)
        bench.database.run(progress_reports.save, ReportBatch([], [_line(claim, 1)]))
        assert bench.database.read(progress_reports.lines, claim.job_id, FIRST, 10) is None

    def test_the_archive_keeps_the_progress_and_drops_the_lines(self, bench: Workbench) -> None:
        """J4.4: an archived job is one row."""
        claim = bench.claimed_job()
        _report(bench, claim, 3)
        bench.database.run(progress_reports.save, ReportBatch([], [_line(claim, 1)]))
        bench.succeed(claim)
        assert bench.database.run(archive.move, [claim.job_id]).jobs == 1
        assert _done(bench, claim) == 3
        assert bench.database.read(progress_reports.lines, claim.job_id, FIRST, 10) == []


def _progress(bench: Workbench, claim: Claim, done: float, **changes: Any) -> ProgressRow:
    row = ProgressRow(claim.job_id, claim.fence, float(done), None, "", bench.clock.micros())
    return row._replace(**changes)


def _report(bench: Workbench, claim: Claim, done: float, **changes: Any) -> None:
    bench.database.run(progress_reports.save, ReportBatch([_progress(bench, claim, done, **changes)], []))


def _done(bench: Workbench, claim: Claim) -> float | None:
    progress = bench.job(claim.job_id).progress
    return None if progress is None else progress.done


def _line(claim: Claim, number: int) -> LineRow:
    text = f"line {number} of “{claim.fence}”"
    return LineRow(claim.job_id, claim.fence, number, claim.attempts + 1, 1_000_000 + number, 20, "windlass.job", text)
