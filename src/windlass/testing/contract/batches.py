"""Batches: children in chunks, counted like members of groups, and an end that is written once."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import pytest

from windlass.domain.batch import BATCH_TARGET, BatchCondition, BatchRules
from windlass.domain.dependencies import NOT_CHOSEN, FlowPosition, Follows, GroupCounts
from windlass.domain.ended import Effects, Unfinished
from windlass.domain.identity import FIRST_ID
from windlass.domain.job import NewJob
from windlass.domain.states import JobStatus
from windlass.errors import JobStateError
from windlass.stores.plans import archive, batches, flow_checks, moves, operations
from windlass.submission.stored_options import StoredFlow, with_flow
from windlass.testing.contract.flow_setup import (
    FOLLOW_UPS,
    canceled_by,
    carried_on,
    claims_of,
    due_times,
    finish,
    status_of,
    statuses,
)
from windlass.testing.contract.workbench import StoreContract, Workbench, at_once, new_job

S = JobStatus
LOADER: Final = "process 7 on host"
RACERS: Final = 4


def begin(bench: Workbench, *follows: int, rules: BatchRules | None = None) -> list[str]:
    """Store a batch without children and a follower for each way; return their ids, the batch first."""
    row = new_job(target=BATCH_TARGET)
    options = with_flow(None, StoredFlow(batch=rules or BatchRules()))
    position = FlowPosition(row.id, answers=True, batch=True)
    rows = [row._replace(due_at=None, delay_us=None, options=options, position=position)]
    for way in follows:
        behind = FlowPosition(row.id, row.id, way)
        rows.append(new_job()._replace(due_at=None, delay_us=None, position=behind))
    (answer,) = bench.submit(rows)
    assert isinstance(answer, list), answer
    return [one.id for one in rows]


def children_of(batch: str, count: int, **changes: Any) -> list[NewJob]:
    """Return rows of children."""
    options = with_flow(None, StoredFlow(group=batch))
    return [new_job(**changes)._replace(batch_id=batch, options=options) for _ in range(count)]


def add(bench: Workbench, batch: str, count: int, seen: int = 0, **changes: Any) -> list[str]:
    """Store a chunk; return the ids of the children."""
    rows = children_of(batch, count, **changes)
    bench.database.run(batches.store_chunk, batches.Chunk(batch, seen, LOADER, rows), (), None)
    return [row.id for row in rows]


def load(bench: Workbench, batch: str, seen: int) -> Effects:
    """End the loading."""
    return bench.database.run(batches.finish_loading, batches.Chunk(batch, seen, LOADER, ()))


def counts(bench: Workbench, batch: str) -> GroupCounts:
    """Return what a batch has counted."""
    state = bench.database.read(batches.state, batch)
    assert state is not None
    return state.counts._replace(publish_progress=0)


class BatchesContract(StoreContract):
    """Loading, counting and ends of batches."""

    def test_chunk_is_stored_once_by_concurrent_loaders(self, bench: Workbench) -> None:
        """J8.4: of loaders that have seen the same number of items, one wins; the others store nothing."""
        (batch,) = begin(bench)

        def racer() -> object:
            try:
                return add(bench, batch, 3)
            except JobStateError as error:
                return error

        answers = at_once(*[racer] * RACERS)
        assert sum(isinstance(answer, list) for answer in answers) == 1
        assert counts(bench, batch).total == 3
        assert len(claims_of(bench)) == 3
        with pytest.raises(JobStateError, match=f"another loader, {LOADER}, has stored items up to number 3"):
            add(bench, batch, 3, seen=0)

    def test_batch_ends_when_all_are_stored_and_have_ended(self, bench: Workbench) -> None:
        """J8.4: not before; its job is never claimed."""
        batch, follower = begin(bench, Follows.THEN)
        add(bench, batch, 2)
        claims = claims_of(bench)
        assert batch not in claims
        finish(bench, list(claims.values()))
        assert (status_of(bench, batch), counts(bench, batch).complete) == (S.PENDING, False)
        effects = load(bench, batch, 2)
        assert [(report.batch_id, report.ended) for report in effects.batches] == [(batch, S.SUCCEEDED)]
        assert (status_of(bench, batch), len(due_times(bench, [follower]))) == (S.SUCCEEDED, 1)

    def test_concurrent_flushes_end_a_batch_once(self, bench: Workbench) -> None:
        """J8.4, J4.3: exactly one flush, or the settlement after them, writes the end."""
        batch, then, failure, rate, count = begin(
            bench,
            Follows.THEN,
            Follows.FAILURE,
            10,
            11,
            rules=BatchRules((BatchCondition("rate", 0.5), BatchCondition("failures", 99))),
        )
        add(bench, batch, 2 * RACERS)
        load(bench, batch, 2 * RACERS)
        claims = list(claims_of(bench).values())
        flushes = [partial(finish, bench, claims[n::RACERS], fails=n == 0) for n in range(RACERS)]
        everything = [effects | carried_on(bench, effects)[0] for effects in at_once(*flushes)]
        ends = [report for effects in everything for report in effects.batches if report.ended is not None]
        assert [end.ended for end in ends] == [S.FAILED]
        assert counts(bench, batch)[:3] == (2 * RACERS, 2 * RACERS - 2, 2)
        assert len(due_times(bench, [failure, rate])) == 2
        assert (status_of(bench, then), canceled_by(bench, count)) == (S.CANCELED, (NOT_CHOSEN, batch))

    def test_progress_is_reported_once_a_second(self, bench: Workbench) -> None:
        """J8.4: for all flushes together."""
        (batch,) = begin(bench)
        add(bench, batch, 4)
        load(bench, batch, 4)
        claims = list(claims_of(bench).values())
        reported = []
        for claim in claims[:3]:
            bench.clock.advance(0.6)
            reported.append([report.progress.completed for report in finish(bench, [claim]).batches])
        assert reported == [[], [2], []]

    def test_cancel_of_a_batch_leaves_its_children_to_an_operation(self, bench: Workbench) -> None:
        """J8.6: which goes on after a crash, and ends with a batch to which nothing is added."""
        batch, follower = begin(bench, Follows.FAILURE)
        children = add(bench, batch, 3)
        moved = bench.database.run(moves.cancel, [batch], FOLLOW_UPS)
        assert (status_of(bench, batch), status_of(bench, follower)) == (S.CANCELED, S.CANCELED)
        assert statuses(bench, children) == {S.PENDING: 3}
        with pytest.raises(JobStateError, match="the batch is CANCELED"):
            add(bench, batch, 1, seen=3)
        bench.clock.advance(flow_checks.OPERATION_IDLE_US / 1_000_000 + 1)
        left = bench.database.run(flow_checks.find_unfinished)
        assert left == moved.effects.unfinished
        carried = bench.database.run(operations.carry_on, left, FOLLOW_UPS)
        assert (len(carried.ended), carried.effects.unfinished) == (3, Unfinished())
        assert (statuses(bench, children), counts(bench, batch).complete) == ({S.CANCELED: 3}, True)

    def test_pause_gives_way_to_a_resume(self, bench: Workbench) -> None:
        """J8.4, J2.3: what is left of the pause does nothing once the batch is resumed."""
        (batch,) = begin(bench)
        children = add(bench, batch, 2)
        paused = bench.database.run(operations.pause, [batch])
        resumed = bench.database.run(operations.resume, [batch])
        bench.database.run(operations.carry_on, resumed.unfinished, FOLLOW_UPS)
        bench.database.run(operations.carry_on, paused.unfinished, FOLLOW_UPS)
        assert statuses(bench, children) == {S.PENDING: 2}

    def test_batch_does_not_end_while_its_children_are_started_over(self, bench: Workbench) -> None:
        """J8.4: the first of them may end before the last one is revived."""
        (batch,) = begin(bench)
        add(bench, batch, 2)
        load(bench, batch, 2)
        finish(bench, list(claims_of(bench).values()), fails=True)
        left = bench.database.run(operations.retry_failed, batch)
        assert left is not None
        assert (status_of(bench, batch), counts(bench, batch).complete) == (S.PENDING, False)
        assert bench.database.run(operations.retry_failed, batch) is None
        carried = bench.database.run(operations.carry_on, left, FOLLOW_UPS)
        assert (len(carried.ended), carried.effects.batches) == (2, ())
        finish(bench, list(claims_of(bench).values()))
        assert (status_of(bench, batch), counts(bench, batch)[:3]) == (S.SUCCEEDED, (2, 2, 0))

    def test_children_are_archived_once_their_batch_has_ended(self, bench: Workbench) -> None:
        """J7.7, J8.6: the retry of an archived child brings its batch back."""
        (batch,) = begin(bench)
        first, second = add(bench, batch, 2)
        claims = claims_of(bench)
        finish(bench, [claims[first]], fails=True)
        bench.clock.advance(100)
        assert bench.database.run(archive.move, [first], 50_000_000).jobs == 0
        finish(bench, [claims[second]])
        load(bench, batch, 2)
        bench.clock.advance(100)
        old = bench.database.read(archive.old_jobs, 50_000_000, FIRST_ID, 10, ids_have_times=False)
        assert old.ids == [batch, first, second]
        assert bench.database.run(archive.move, old.ids, 50_000_000).jobs == 3
        assert bench.database.read(batches.state, batch) is None
        assert len(bench.database.run(moves.retry, [first], FOLLOW_UPS).ended) == 1
        assert (status_of(bench, batch), counts(bench, batch)[:3]) == (S.PENDING, (2, 1, 0))

    def test_wrong_counts_of_an_idle_batch_are_corrected(self, bench: Workbench) -> None:
        """J7.5: as those of groups; the batch ends then."""
        (batch,) = begin(bench)
        add(bench, batch, 1)
        load(bench, batch, 1)
        finish(bench, list(claims_of(bench).values()), follow_ups=())
        bench.clock.advance(flow_checks.GROUP_IDLE_US / 1_000_000 + 1)
        checked = bench.database.run(flow_checks.recount, FIRST_ID)
        assert (checked.found, status_of(bench, batch)) == (1, S.SUCCEEDED)
