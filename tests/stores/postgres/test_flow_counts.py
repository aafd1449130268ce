"""Counts of groups while other transactions hold them: a flush never waits, a settlement and a retry do."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

import psycopg
import pytest

from tests.support.waiting import until
from windlass.domain.clock import VirtualClock
from windlass.domain.dependencies import CountedGroup, GroupCounts, MemberChange
from windlass.domain.ended import Unfinished
from windlass.domain.states import JobStatus
from windlass.stores.open import open_database
from windlass.stores.plan import Plan
from windlass.stores.plans import flows
from windlass.stores.postgres.dialect import PostgresDialect
from windlass.testing.contract.flow_setup import (
    NOTHING_LEFT,
    assert_counted,
    carried_on,
    claims_of,
    counts,
    due_times,
    find_unfinished,
    finish,
    joined,
    retry,
    status_of,
)
from windlass.testing.contract.workbench import Workbench, at_once

WAITING = """SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock' AND pid <> pg_backend_pid()"""
RACERS = 4


@pytest.fixture
def bench(clean_pg_url: str, clock: VirtualClock) -> Iterator[Workbench]:
    database = open_database(clean_pg_url, clock)
    yield Workbench(database, clock)
    database.close()


@contextmanager
def held(url: str, group: str) -> Iterator[psycopg.Connection[Any]]:
    """Another transaction that counts members of a group, and has not committed yet."""
    with psycopg.connect(url) as connection:
        connection.execute("SELECT 1 FROM windlass_group WHERE id = %s FOR UPDATE", [group])
        yield connection


def after_it_waits(url: str, held_by: psycopg.Connection[Any], action: Callable[[], Any]) -> Any:
    """Run an action that must wait for a lock; commit what holds the lock once it does; return the answer."""
    with ThreadPoolExecutor(1) as pool, psycopg.connect(url, autocommit=True) as onlooker:
        running: Future[Any] = pool.submit(action)

        def waits() -> bool:
            (count,) = onlooker.execute(WAITING).fetchone() or (0,)
            return bool(count) or running.done()

        until(waits, "the action to wait for the lock")
        waited = not running.done()
        held_by.commit()
        answer = running.result(90)
        assert waited, f"it did not wait, and answered {answer}"
        return answer


def test_flush_that_finds_its_group_held_notes_its_count_and_does_not_wait(bench: Workbench, clean_pg_url: str):
    """J8.3: outcome and note are committed together; the effects name the group, about which nothing is decided."""
    flow = joined(bench, 2)
    claims = list(claims_of(bench).values())
    with held(clean_pg_url, flow.group):
        effects = finish(bench, claims)
    assert effects.unfinished == Unfinished(groups=frozenset({flow.group}))
    assert counts(bench, flow.group) == GroupCounts(2, 0, 0)
    assert due_times(bench, [flow.join, flow.always]) == []
    rest, rounds = carried_on(bench, effects)
    assert (set(rest.work), rounds, counts(bench, flow.group)) == ({("default", 2)}, 1, GroupCounts(2, 2, 0))
    assert len(due_times(bench, [flow.join, flow.always])) == 2
    assert_counted(bench, flow.group)


def test_flush_takes_along_what_others_have_noted(bench: Workbench, clean_pg_url: str):
    """J8.3: the last member decides before the notes are settled; the settlement that comes later changes nothing."""
    flow = joined(bench, 3)
    first, second, third = claims_of(bench).values()
    with held(clean_pg_url, flow.group):
        noted = finish(bench, [first])
        noted |= finish(bench, [second])
    finish(bench, [third])
    assert counts(bench, flow.group) == GroupCounts(3, 3, 0)
    (due,) = due_times(bench, [flow.join])
    bench.clock.advance(60)
    rest, _ = carried_on(bench, noted)
    assert (rest.work, due_times(bench, [flow.join])) == (frozenset(), [due])


def test_noted_count_of_a_process_that_died_is_found(bench: Workbench, clean_pg_url: str):
    """J7.5, J8.3: the checks settle it."""
    flow = joined(bench, 1)
    claims = list(claims_of(bench).values())
    with held(clean_pg_url, flow.group):
        effects = finish(bench, claims)
    left = find_unfinished(bench)
    assert left == effects.unfinished
    bench.database.run(flows.carry_on, left)
    assert len(due_times(bench, [flow.join])) == 1
    assert find_unfinished(bench) == NOTHING_LEFT


def settles_after_it_has_waited(bench: Workbench, url: str) -> None:
    """Settle a group that another transaction holds, which counts a member of its own."""
    flow = joined(bench, 2)
    first, second = claims_of(bench).values()
    with held(url, flow.group) as other:
        effects = finish(bench, [first])
        other.execute("UPDATE windlass_group SET succeeded = succeeded + 1")
        settled = after_it_waits(url, other, partial(bench.database.run, flows.carry_on, effects.unfinished))
    assert (settled.unfinished, settled.work) == (NOTHING_LEFT, {("default", 2)})
    assert counts(bench, flow.group) == GroupCounts(2, 2, 0)
    assert find_unfinished(bench) == NOTHING_LEFT
    finish(bench, [second], follow_ups=())
    assert_counted(bench, flow.group)


def revives_after_it_has_waited(bench: Workbench, url: str) -> None:
    """Retry the failed member of a group that another transaction holds."""
    flow = joined(bench, 2)
    first, _ = claims_of(bench).values()
    finish(bench, [first], fails=True)
    with held(url, flow.group) as other:
        after_it_waits(url, other, partial(retry, bench, first.job_id))
    assert (counts(bench, flow.group), status_of(bench, flow.join)) == (GroupCounts(2, 0, 0), JobStatus.PENDING)
    assert_counted(bench, flow.group)


def test_settlement_waits_for_the_group_and_counts_everything(bench: Workbench, clean_pg_url: str):
    """J8.3: it sees what the other transaction has counted, and decides."""
    settles_after_it_has_waited(bench, clean_pg_url)


def test_retry_waits_for_the_group_of_its_job(bench: Workbench, clean_pg_url: str):
    """J8.3, J2.4: whether it was the last failed member is known only under the lock."""
    revives_after_it_has_waited(bench, clean_pg_url)


def test_concurrent_settlements_count_each_note_once(bench: Workbench, clean_pg_url: str):
    """J8.3: of several processes, one finds the notes; the join is released once."""
    flow = joined(bench, RACERS)
    claims = list(claims_of(bench).values())
    with held(clean_pg_url, flow.group):
        left = [finish(bench, [claim]).unfinished for claim in claims]
    found = at_once(*[partial(bench.database.run, flows.carry_on, one) for one in left])
    assert [bool(effects.work) for effects in found].count(True) == 1
    assert_counted(bench, flow.group)


def test_build_that_settles_without_the_lock_is_caught(
    bench: Workbench, clean_pg_url: str, monkeypatch: pytest.MonkeyPatch
):
    """J8.3: a broken build: a settlement leaves the group to be settled again, a retry does not revive the join."""
    sound = PostgresDialect.count_members

    def broken(self: PostgresDialect, changes: list[MemberChange], *, wait: bool) -> Plan[list[CountedGroup]]:
        del wait
        return sound(self, changes, wait=False)

    monkeypatch.setattr(PostgresDialect, "count_members", broken)
    for check in (settles_after_it_has_waited, revives_after_it_has_waited):
        with pytest.raises(AssertionError, match="did not wait"):
            check(bench, clean_pg_url)
        with psycopg.connect(clean_pg_url, autocommit=True) as connection:
            connection.execute("DELETE FROM windlass_hot")
