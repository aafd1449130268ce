"""Flows in the archive: moved as a whole, restored as a whole, and not purged while one of their jobs is live."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import pytest

from windlass.domain.dependencies import ALL, EndedStep, FlowPosition, Follows
from windlass.domain.identity import new_job_id, new_job_ids
from windlass.domain.states import JobStatus
from windlass.errors import JobStateError
from windlass.flow import followers
from windlass.stores.columns import FLOW
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan, Step
from windlass.stores.plans import archive, dead_letters, flow_returns, flows, moves, redrives
from windlass.stores.plans.dead_letters import AuditEntry
from windlass.testing.contract.archive import DAY, move, old, steps_of
from windlass.testing.contract.dead_letters import ANY, fail_for_good, rows
from windlass.testing.contract.workbench import SECOND, StoreContract, Workbench, at_once, new_job

S = JobStatus
REVIVAL: Final = followers.feature(60).follow_ups
ENTRY: Final = AuditEntry(new_job_id(), "ann", "dead_letters.redrive", 0, {})
FLOW_TABLES: Final = ("flow", "group", "group_delta")


class FlowArchiveContract(StoreContract):
    """Archive, retry and purge of jobs of flows."""

    # ------------------------------------------------------------------ moving

    def test_a_flow_is_archived_when_all_of_it_ended_long_ago(self, bench: Workbench) -> None:
        """J8.6, J7.7: none of its jobs before; other jobs do not wait for it."""
        flow, (plain,) = store_chain(bench), bench.put()
        end(bench, {flow.jobs[0]: S.SUCCEEDED, plain: S.SUCCEEDED})
        bench.clock.advance(2 * DAY)
        assert old(bench, DAY * SECOND) == [plain]
        assert move(bench, [*flow.jobs, plain], DAY * SECOND) == 1
        end(bench, {flow.jobs[1]: S.FAILED})
        assert {bench.job(job).status for job in flow.jobs[2:]} == {S.CANCELED}
        assert (old(bench, DAY * SECOND), move(bench, flow.jobs, DAY * SECOND)) == ([], 0)
        bench.clock.advance(DAY)
        assert old(bench, DAY * SECOND) == sorted(flow.jobs)
        before = [bench.seen(job) for job in flow.jobs]
        assert move(bench, flow.jobs, DAY * SECOND) == len(flow.jobs)
        assert [bench.seen(job) for job in flow.jobs] == before
        assert [rows(bench, table) for table in ("job", "done", "attempt", "flow")] == [0] * 4

    def test_a_paused_dead_letter_keeps_its_flow(self, bench: Workbench) -> None:
        """J8.6, J2.3: until it is resumed."""
        flow = store_chain(bench)
        end(bench, {flow.jobs[0]: S.FAILED})
        bench.database.run(moves.pause, flow.jobs[:1])
        assert (old(bench, 0), move(bench, flow.jobs)) == ([], 0)
        bench.database.run(moves.resume, flow.jobs[:1])
        assert move(bench, flow.jobs) == len(flow.jobs)

    def test_a_flow_is_moved_in_several_transactions(self, bench: Workbench) -> None:
        """J8.6, J7.7: groups go with the last row, counts that were left too."""
        flow, other = failed_join(bench), failed_join(bench)
        bench.script(
            "INSERT INTO windlass_group_delta (group_id, succeeded, failed) SELECT id, 0, 0 FROM windlass_group"
        )
        left = []
        for job in flow.jobs:
            assert move(bench, [job]) == 1
            left.append([rows(bench, table) for table in FLOW_TABLES])
        assert left == [[7, 2, 2], [6, 2, 2], [5, 2, 2], [4, 1, 1]]
        assert old(bench, 0) == sorted(other.jobs)

    def test_any_number_of_jobs_of_flows_takes_the_same_statements(self, bench: Workbench) -> None:
        """J7.7: decided for each flow, not for each job."""
        taken = [steps_of(bench, archive.move, found.jobs) for found in (failed_join(bench), failed_join(bench, 60))]
        assert taken[0] == taken[1] <= 16
        assert rows(bench, "archive") == 66

    def test_a_large_flow_is_checked_once(self, bench: Workbench) -> None:
        """J7.7: a flow of which a job is archived has ended; a job paused since stays, the others go."""
        flow = failed_join(bench)
        assert move(bench, flow.jobs[:1]) == 1
        bench.database.run(moves.pause, flow.jobs[1:2])
        assert move(bench, flow.jobs[1:]) == 2
        assert bench.job(flow.jobs[1]).status is S.PAUSED

    # ------------------------------------------------------------------ coming back

    @pytest.mark.parametrize("archived", [slice(None), slice(0, 1), slice(2, None)], ids=["all", "one", "followers"])
    def test_a_retry_restores_the_whole_flow(self, bench: Workbench, archived: slice) -> None:
        """J2.4, J8.3, J8.6: however much of it is archived; what its failure canceled is revived, and completes."""
        flow = failed_join(bench)
        positions, history = bench.database.run(positions_of, flow.jobs), bench.history(flow.jobs[0])
        move(bench, flow.jobs[archived])
        moved = bench.database.run(moves.retry, [flow.jobs[1]], REVIVAL)
        assert [job.job_id for job in moved.ended] == [flow.jobs[1]]
        assert [bench.job(job).status for job in flow.jobs] == [S.SUCCEEDED, S.PENDING, S.PENDING, S.PENDING]
        assert (rows(bench, "archive"), bench.history(flow.jobs[0])) == (0, history)
        assert bench.database.read(counts_of, flow.group)[:3] == (2, 1, 0)
        for job in flow.jobs[1:]:
            end(bench, {job: S.SUCCEEDED}, dict.fromkeys(flow.jobs[:2], flow.group))
        assert bench.database.run(positions_of, flow.jobs) == positions
        assert move(bench, flow.jobs) == len(flow.jobs)
        assert [rows(bench, table) for table in FLOW_TABLES] == [0, 0, 0]

    def test_a_restored_group_still_counts_its_purged_members(self, bench: Workbench) -> None:
        """J8.3, J5.6: its join is not revived, since a result would be missing."""
        flow = store_join(bench)
        groups = dict.fromkeys(flow.jobs[:2], flow.group)
        end(bench, {flow.jobs[0]: S.FAILED}, groups)
        bench.clock.advance(DAY)
        end(bench, {flow.jobs[1]: S.FAILED}, groups)
        move(bench, flow.jobs)
        assert bench.database.run(dead_letters.purge, DAY * SECOND, 10).jobs == 1
        bench.database.run(moves.retry, [flow.jobs[1]], REVIVAL)
        assert bench.database.read(counts_of, flow.group)[:3] == (2, 0, 1)
        assert [bench.job(job).status for job in flow.jobs[1:]] == [S.PENDING, S.CANCELED, S.CANCELED]

    def test_an_archived_dead_letter_is_paused_without_its_flow(self, bench: Workbench) -> None:
        """J2.3, J8.6: which comes back if it is resumed and retried."""
        flow = failed_join(bench)
        move(bench, flow.jobs)
        assert len(bench.database.run(moves.pause, [flow.jobs[1]])) == 1
        assert rows(bench, "archive") == 3
        assert len(bench.database.run(moves.resume, [flow.jobs[1]])) == 1
        bench.database.run(moves.retry, [flow.jobs[1]], REVIVAL)
        assert [bench.job(job).status for job in flow.jobs] == [S.SUCCEEDED, S.PENDING, S.PENDING, S.PENDING]
        assert bench.database.read(counts_of, flow.group)[:3] == (2, 1, 0)

    def test_a_large_archived_flow_is_not_restored(self, bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
        """J2.4, J8.6: the error says so; a re-drive skips it and goes on."""
        monkeypatch.setattr(flow_returns, "MOST_ROWS", 3)
        large, small = failed_join(bench), failed_chain(bench)
        move(bench, [*large.jobs, *small.jobs])
        with pytest.raises(JobStateError, match="flow of more than 3 jobs that is archived"):
            bench.database.run(moves.retry, [large.jobs[1]], REVIVAL)
        assert rows(bench, "archive") == 7
        batch = bench.database.run(redrives.redrive, ANY, None, 10, (), ENTRY, REVIVAL)
        assert [job.job_id for job in batch.moved.ended] == [small.jobs[0]]
        assert [str(error) for error in batch.kept.values()] == [str(batch.kept[large.jobs[1]])]
        assert bench.job(large.jobs[1]).status is S.FAILED

    def test_a_redrive_restores_few_flows_per_transaction(
        self, bench: Workbench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """J5.7, J8.6: bounded transactions, and each dead letter once."""
        monkeypatch.setattr(flow_returns, "MOST_ROWS", 7)
        found = [failed_chain(bench) for _ in range(5)]
        plain = bench.claimed_job()
        fail_for_good(bench, [plain])
        move(bench, [job for flow in found for job in flow.jobs])
        moved: list[str] = []
        spot = None
        for _ in range(3):
            batch = bench.database.run(redrives.redrive, ANY, spot, 10, moved, ENTRY, REVIVAL)
            assert batch.selected == [job.job_id for job in batch.moved.ended]
            moved += batch.selected
            spot = batch.next_spot
        assert (sorted(moved), spot) == (sorted([*(flow.jobs[0] for flow in found), plain.job_id]), None)
        assert (rows(bench, "archive"), rows(bench, "dead_letter")) == (0, 0)

    def test_a_retry_and_the_archive_at_once_do_not_split_a_flow(self, bench: Workbench) -> None:
        """J2.1, J8.6: all of it lives again, whichever came first."""
        for number in range(8):
            flow = failed_chain(bench)
            retried, _ = at_once(
                partial(bench.database.run, moves.retry, flow.jobs[:1], REVIVAL),
                partial(move, bench, flow.jobs[number % 2 :]),
            )
            assert len(retried.ended) == 1
            assert {bench.job(job).status for job in flow.jobs} == {S.PENDING}
            assert rows(bench, "archive") == 0

    # ------------------------------------------------------------------ purging

    def test_dead_letters_of_a_live_flow_are_not_purged(self, bench: Workbench) -> None:
        """J5.6: a batch of them does not end the purge of others, and they go when the flow has ended."""
        flow = store_join(bench, 5)
        groups = dict.fromkeys(flow.jobs[:5], flow.group)
        end(bench, dict.fromkeys(flow.jobs[:4], S.FAILED), groups)
        plain = bench.put(2)
        end(bench, dict.fromkeys(plain, S.FAILED))
        assert purge(bench) == [0, 0, 2, 0]
        assert [bench.exists(job) for job in (*flow.jobs, *plain)] == [True] * 7 + [False] * 2
        end(bench, {flow.jobs[4]: S.FAILED}, groups)
        assert purge(bench) == [2, 2, 1]
        assert [rows(bench, table) for table in ("flow", "group", "dead_letter")] == [2, 1, 0]
        assert move(bench, flow.jobs) == 2
        assert [rows(bench, table) for table in FLOW_TABLES] == [0, 0, 0]

    def test_a_purge_deletes_the_last_rows_of_a_flow(self, bench: Workbench) -> None:
        """J5.6, J8.6: with its groups; archived ones too."""
        for archived in (False, True):
            flow = store(bench, [FlowPosition("", group_id=group) for group in [new_job_id()] * 2])
            end(bench, dict.fromkeys(flow.jobs, S.FAILED), dict.fromkeys(flow.jobs, flow.group))
            move(bench, flow.jobs if archived else [])
            assert sum(purge(bench)) == 2
            assert [rows(bench, table) for table in (*FLOW_TABLES, "job", "archive")] == [0] * 5

    def test_a_purge_and_a_retry_at_once_leave_no_half_of_a_flow(self, bench: Workbench) -> None:
        """J5.6, J2.4: the dead letter is gone, or its followers live."""
        for _ in range(4):
            flow = failed_chain(bench)
            purged, retried = at_once(
                partial(bench.database.run, dead_letters.purge, 0, 10),
                partial(bench.database.run, moves.retry, flow.jobs[:1], REVIVAL),
            )
            assert purged.jobs + len(retried.ended) == 1
            assert {bench.job(job).status for job in flow.jobs[1:]} == {S.PENDING if retried.ended else S.CANCELED}
            bench.database.run(moves.cancel, flow.jobs, REVIVAL)


class FlowJobs(NamedTuple):
    """The jobs of a flow, in the order of their ids, and its group."""

    jobs: list[str]
    group: str


def store(bench: Workbench, positions: Sequence[FlowPosition]) -> FlowJobs:
    """Store a flow; the parents of its followers are groups, or numbers of jobs."""
    ids = new_job_ids(len(positions))
    made = []
    for job, position in zip(ids, positions, strict=True):
        parent = position.parent_id
        named = ids[int(parent)] if parent is not None and parent.isdigit() else parent
        stored = position._replace(flow_id=ids[0], parent_id=named, answers=job == ids[0])
        made.append(new_job(id=job, position=stored, delay_us=0 if parent is None else None))
    (answer,) = bench.submit(made)
    assert isinstance(answer, list)
    return FlowJobs(list(ids), next((one.group_id for one in positions if one.group_id is not None), ""))


def store_chain(bench: Workbench) -> FlowJobs:
    """Store three jobs, each of which follows the one before."""
    return store(bench, [FlowPosition(""), *(FlowPosition("", str(before), Follows.THEN) for before in range(2))])


def store_join(bench: Workbench, members: int = 2) -> FlowJobs:
    """Store a group, a job that joins it, and one that follows that job."""
    group = new_job_id()
    join = FlowPosition("", group, Follows.THEN, delay_us=SECOND)
    tail = FlowPosition("", str(members), Follows.ALWAYS, due_at=7)
    return store(bench, [*[FlowPosition("", group_id=group)] * members, join, tail])


def failed_chain(bench: Workbench) -> FlowJobs:
    """Store a chain whose first job fails, a microsecond after everything before."""
    flow = store_chain(bench)
    end(bench, {flow.jobs[0]: S.FAILED})
    bench.clock.advance(0.000_001)
    return flow


def failed_join(bench: Workbench, members: int = 2) -> FlowJobs:
    """Store a join of which the second member fails and the others succeed."""
    flow = store_join(bench, members)
    ends = {job: S.FAILED if job == flow.jobs[1] else S.SUCCEEDED for job in flow.jobs[:members]}
    end(bench, ends, dict.fromkeys(ends, flow.group))
    return flow


def end(bench: Workbench, ends: dict[str, JobStatus], groups: dict[str, str] | None = None) -> None:
    """Run jobs that are due to their ends, and write what follows."""
    bench.clock.advance(1)
    claims = {claim.job_id: claim for claim in bench.claim()}
    for job, claim in claims.items():
        if job not in ends:
            bench.retry(claim)
        elif ends[job] is S.FAILED:
            fail_for_good(bench, [claim])
        else:
            bench.succeed(claim)
    steps = [EndedStep(job, status, ALL, (groups or {}).get(job)) for job, status in ends.items()]
    bench.database.run(flows.follow, steps)


def purge(bench: Workbench) -> list[int]:
    """Purge all dead letters, two at a time; return the number of jobs of each batch."""
    deleted: list[int] = []
    after: tuple[int, str] | None = dead_letters.FIRST
    while after is not None:
        jobs, after = bench.database.run(dead_letters.purge, 0, 2, after)
        deleted.append(jobs)
    return deleted


def positions_of(dialect: Dialect, ids: Sequence[str]) -> Plan[list[dict[str, Any]]]:
    """Return the rows of `windlass_flow` of ended jobs."""
    found = yield Step("lock_archivable", {"ids": dialect.ids(ids), "age_us": 0})
    return [dict(zip(FLOW, row[2:], strict=True)) for row in found]


def counts_of(dialect: Dialect, group: str) -> Plan[tuple[int, ...]]:
    """Return total, succeeded and failed members of a group."""
    del dialect
    return tuple((yield Step("recount_members", {"id": group})))
