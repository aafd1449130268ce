"""Triage: dead letters found by what they have in common, re-driven in bounded batches, and purged."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from windlass.domain.admission import Holder
from windlass.domain.job import Claim
from windlass.domain.states import JobStatus
from windlass.domain.transition import Failure
from windlass.errors import DuplicateBusinessKeyError
from windlass.stores.plans import archive, dead_letters, moves, progress_reports, redrives, triage
from windlass.stores.plans.dead_letters import AuditEntry
from windlass.testing.contract.dead_letters import ANY, DAY, RACERS, fail_for_good, groups, letters, of_old, rows
from windlass.testing.contract.workbench import SECOND, StoreContract, Workbench, at_once

S = JobStatus
FILTERS = ("fingerprint", "target", "queue", "error_class", "reason")
ENTRY = AuditEntry("00000000-0000-7000-8000-000000000001", "ann@web1", "dead_letters.redrive", 0, {"reason": "mended"})


class TriageContract(StoreContract):
    """What operators do about dead letters."""

    # ------------------------------------------------------------------ finding

    @pytest.mark.parametrize("name", FILTERS)
    def test_each_filter_finds_its_own(self, bench: Workbench, name: str) -> None:
        """J5.7: alone and with others, in pages, the latest first; a re-drive takes the first to die first."""
        mine = _various(bench)
        asked = triage.LetterFilters(**{name: getattr(_facts(bench, mine[0]), name)})
        found, spot = [], None
        while True:
            page = bench.database.read(triage.find, asked, spot, 2)
            found += [facts.job_id for facts in page.letters]
            spot = page.next_spot
            if spot is None:
                break
        assert found == mine[::-1]
        oldest = bench.database.read(triage.oldest, asked, None, 10)
        assert [facts.job_id for facts in oldest.letters] == mine
        both = asked._replace(tag="odd")
        assert [facts.job_id for facts in bench.database.read(triage.find, both, None, 9).letters] == mine[1::2][::-1]
        other: dict[str, Any] = {name: "another"}
        every = triage.LetterFilters(**{each: getattr(_facts(bench, mine[0]), each) for each in FILTERS})
        assert len(bench.database.read(triage.find, every, None, 9).letters) == 4
        assert bench.database.read(triage.find, every._replace(**other), None, 9).letters == []
        assert [group.size for group in groups(bench, asked)] == [4]
        assert [group.size for group in groups(bench, both)] == [2]

    def test_filters_by_time_use_the_time_of_the_failure(self, bench: Workbench) -> None:
        """J5.7: from `after` on, up to before `before`, in both directions."""
        mine, start = _various(bench), bench.clock.micros()
        times = {job: _facts(bench, job).created_at for job in mine}
        assert max(times.values()) < start
        middle = triage.LetterFilters(target="shop:refund", after=times[mine[1]], before=times[mine[3]])
        for plan, expected in ((triage.find, mine[2:0:-1]), (triage.oldest, mine[1:3])):
            assert [facts.job_id for facts in bench.database.read(plan, middle, None, 9).letters] == expected
        (group,) = groups(bench, middle)
        assert (group.size, group.first_at, group.last_at) == (2, times[mine[1]], times[mine[2]])

    def test_groups_come_largest_first(self, bench: Workbench) -> None:
        """J5.7: with first and last death, and one of their errors."""
        for name, count in (("a", 1), ("b", 3), ("c", 2)):
            for _ in range(count):
                fail_for_good(bench, [bench.claimed_job()], Failure(f"ValueError: {name}", "ValueError"))
                bench.clock.advance(1)
        found = groups(bench)
        assert [(group.sample[-1], group.size) for group in found] == [("b", 3), ("c", 2), ("a", 1)]
        assert [group.last_at - group.first_at for group in found] == [2 * SECOND, SECOND, 0]
        assert [group.sample[-1] for group in bench.database.read(triage.groups, ANY, 2)] == ["b", "c"]

    # ------------------------------------------------------------------ re-driving

    def test_a_batch_skips_jobs_whose_business_key_is_held(self, bench: Workbench) -> None:
        """J5.7: a key that is held, or that two of them want; the rest starts over, and the audit log says so."""
        dead = []
        for key in (None, "order:1", "order:2", "order:2"):
            dead.append(bench.claimed_job(business_key=key))
            fail_for_good(bench, dead[-1:])
            bench.clock.advance(1)
        plain, held, first, second = dead
        bench.put(business_key="order:1")
        batch = bench.database.run(redrives.redrive, ANY, None, 10, (), ENTRY)
        assert [job.job_id for job in batch.moved.ended] == [plain.job_id, first.job_id]
        assert {
            job: error.key for job, error in batch.kept.items() if isinstance(error, DuplicateBusinessKeyError)
        } == {
            held.job_id: "order:1",
            second.job_id: "order:2",
        }
        assert {bench.job(claim.job_id).status for claim in (held, second)} == {S.FAILED}
        assert bench.holder("order:2") == Holder(first.job_id, "PENDING")
        assert [group.size for group in groups(bench)] == [2]
        assert rows(bench, "audit") == 1

    def test_racing_redrives_move_each_job_once(self, bench: Workbench) -> None:
        """J5.7, J2.1: the second call finds them alive."""
        claims = [bench.claimed_job() for _ in range(12)]
        fail_for_good(bench, claims)
        batches = at_once(*[partial(bench.database.run, redrives.redrive, ANY, None, 12, (), ENTRY)] * RACERS)
        moved = [job.job_id for batch in batches for job in batch.moved.ended]
        assert sorted(moved) == sorted(claim.job_id for claim in claims)
        assert (groups(bench), len(bench.claim())) == ([], 12)

    # ------------------------------------------------------------------ purging

    def test_a_purge_deletes_everything_but_keys(self, bench: Workbench) -> None:
        """J5.6, J1.4: live or archived, in bounded batches, alerts and groups of that age too."""
        claims = [bench.claimed_job(idempotency_key=f"i{number}", tags=("t", f"t{number}")) for number in range(3)]
        for claim in claims:
            _report(bench, claim)
        fail_for_good(bench, claims)
        bench.database.run(archive.move, [claims[0].job_id])
        bench.clock.advance(90 * DAY)
        young = bench.claimed_job(tags=("t",))
        fail_for_good(bench, [young])
        purged = [bench.database.run(dead_letters.purge, 90 * DAY * SECOND, 2).jobs for _ in range(3)]
        assert purged == [2, 1, 0]
        assert [bench.exists(claim.job_id) for claim in (*claims, young)] == [False, False, False, True]
        assert bench.first_job("i0") == claims[0].job_id
        left = ("job", "done", "dead_letter", "job_tag", "attempt", "alert", "dead_letter_group")
        assert {table: rows(bench, table) for table in left} == dict.fromkeys(left, 1)
        assert {rows(bench, table) for table in ("archive", "progress", "job_log")} == {0}

    def test_a_purge_checks_the_job_itself(self, bench: Workbench) -> None:
        """J5.6, J2.3: a node of an earlier version paused one, and revived another, and knew of no dead letters."""
        paused, revived, dead = (bench.claimed_job() for _ in range(3))
        fail_for_good(bench, [paused, revived, dead])
        bench.database.run(of_old, paused.job_id, "pause_ended")
        bench.database.run(of_old, revived.job_id, "revive", "forget_ended")
        assert bench.database.run(dead_letters.purge, 0, 10).jobs == 1
        assert [bench.exists(claim.job_id) for claim in (paused, revived, dead)] == [True, True, False]
        assert [claim.job_id for claim in bench.claim()] == [revived.job_id]
        assert (letters(bench), groups(bench)) == ([], [])
        bench.database.run(moves.resume, [paused.job_id])
        assert [str(letter.job_id) for letter in letters(bench)] == [paused.job_id]

    def test_a_concurrent_purge_and_retry_never_leave_half_a_job(self, bench: Workbench) -> None:
        """J5.6, J2.4: it is gone, or it lives; never half of it."""
        for _ in range(RACERS):
            claim = bench.claimed_job()
            fail_for_good(bench, [claim])
            purged, retried = at_once(
                partial(bench.database.run, dead_letters.purge, 0, 10),
                partial(bench.database.run, moves.retry, [claim.job_id]),
            )
            assert (purged.jobs, len(retried.ended)) in {(1, 0), (0, 1)}
            assert bench.exists(claim.job_id) == bool(retried.ended)
            assert (letters(bench), groups(bench)) == ([], [])
            bench.claim()


def _various(bench: Workbench) -> list[str]:
    """Store dead letters of two kinds in turn, a second apart; return those of the second kind."""
    mine = []
    for number in range(4):
        fail_for_good(bench, [bench.claimed_job(tags=("odd",))])
        bench.clock.advance(1)
        tags = ("odd",) if number % 2 else ()
        claim = bench.claimed_job(queue="pay", target="shop:refund", tags=tags)
        fail_for_good(bench, [claim], Failure(f"KeyError: '{number}'", "KeyError"), reason="non_retryable")
        mine.append(claim.job_id)
        bench.clock.advance(1)
    return mine


def _facts(bench: Workbench, job_id: str) -> triage.Facts:
    found = bench.database.read(triage.find, ANY, None, 100)
    return next(facts for facts in found.letters if facts.job_id == job_id)


def _report(bench: Workbench, claim: Claim) -> None:
    progress = progress_reports.ProgressRow(claim.job_id, claim.fence, 1.0, None, "", 0)
    line = progress_reports.LineRow(claim.job_id, claim.fence, 1, 1, 0, 20, "shop", "x")
    bench.database.run(progress_reports.save, progress_reports.ReportBatch([progress], [line]))
