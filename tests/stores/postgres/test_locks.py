"""PostgreSQL: no claim waits for a locked row, and a plan is restarted after a deadlock."""

import threading
from collections.abc import Iterator
from functools import partial
from typing import Any, TypeVar

import psycopg
import pytest

from windlass.domain.clock import VirtualClock
from windlass.domain.lanes import Lane
from windlass.domain.states import JobStatus
from windlass.stores.claim_order import ClaimRequest
from windlass.stores.dialect import Claimed, Dialect
from windlass.stores.open import open_database
from windlass.stores.plan import SCRIPT, Plan, Step
from windlass.stores.plans import claims, limits
from windlass.stores.plans.limits import Limit
from windlass.testing.contract.workbench import NODE, THREAD_TIMEOUT, Workbench, at_once

T = TypeVar("T")

IMPATIENT = "options=-c%20lock_timeout%3D3000"
"""Set a lock timeout, so that nothing waits for ever for a lock of the test."""


@pytest.fixture
def bench(clean_pg_url: str, clock: VirtualClock) -> Iterator[Workbench]:
    database = open_database(f"{clean_pg_url}?{IMPATIENT}", clock)
    yield Workbench(database, clock)
    database.close()


@pytest.fixture
def rival(clean_pg_url: str) -> Iterator[psycopg.Connection]:
    """An open transaction of another connection."""
    with psycopg.connect(clean_pg_url) as connection:
        yield connection
        connection.rollback()


def hold(rival: psycopg.Connection, ids: list[str]) -> None:
    rival.execute("SELECT 1 FROM windlass_hot WHERE id = ANY(%s::uuid[]) FOR UPDATE", (ids,))


def test_a_claim_skips_rows_that_another_claim_has_locked(bench: Workbench, rival: psycopg.Connection):
    """J3.1, J3.2: the exact order among the rows that are not locked, without waiting for the others."""
    ids = bench.put(30)
    hold(rival, ids[:10])
    assert [claim.job_id for claim in bench.claim_all(15, chunk=15).claims] == ids[10:25]
    rival.rollback()
    assert [claim.job_id for claim in bench.claim()] == ids[:10] + ids[25:]


def open_ended(plan: Plan[T]) -> Plan[T]:
    """A plan whose last step does not bring the commit along: the test goes on in its transaction."""
    answer: Any = None
    try:
        while True:
            answer = yield plan.send(answer)._replace(final=False)
    except StopIteration as stop:
        result: T = stop.value
        return result


def test_a_claim_locks_no_more_rows_of_a_lane_than_its_gate_has_permits(bench: Workbench, rival: psycopg.Connection):
    """J3.2, J3.4: a long backlog behind a narrow gate costs a claim nothing, and is left to others."""
    bench.database.run(limits.configure_resource, "stripe", Limit(2, None, None))
    bench.put(40, lane=Lane("stripe").text)
    bench.put(40)
    found = bench.heads()
    left: list[int] = []

    def looked_at(dialect: Dialect) -> Plan[Claimed]:
        claimed = yield from open_ended(claims.claim(dialect, ClaimRequest(NODE, found.heads, 30, 32, 0)))
        rows = rival.execute("SELECT 1 FROM windlass_hot WHERE lane IS NOT NULL FOR UPDATE SKIP LOCKED").fetchall()
        left.append(len(rows))
        return claimed

    taken = bench.database.run(looked_at).claims
    assert sum(claim.lane is not None for claim in taken) == 2
    assert left == [38]


def test_recovery_skips_locked_rows(bench: Workbench, rival: psycopg.Connection):
    """J7.2: recovery does not wait for a late write that is being committed; the next pass sees its result."""
    ids = bench.put(4)
    bench.claim()
    bench.lose(NODE)
    hold(rival, ids[:1])
    while bench.recover().recovered:
        pass
    assert [bench.job(job_id).status for job_id in ids] == [JobStatus.RUNNING] + [JobStatus.PENDING] * 3
    rival.rollback()
    assert bench.recover().recovered == {NODE: 1}


def test_a_deadlock_is_run_again(bench: Workbench):
    """J7.8: the server ends one of two plans that wait for each other; both are committed in the end."""
    bench.put(2)
    crossing = threading.Barrier(2)
    at_once(*[partial(bench.database.run, _two_writes, order, crossing, [True]) for order in ((0, 1), (1, 0))])
    claims = bench.claim()
    assert [claim.crash_count for claim in claims] == [2, 2]


def _two_writes(_: Dialect, order: tuple[int, int], crossing: threading.Barrier, first_try: list[bool]) -> Plan[None]:
    """Raise the crash count of both jobs, in this order; the first time, each waits until the other has one of them."""
    for place in order:
        row = f"SELECT id FROM windlass_job ORDER BY id LIMIT 1 OFFSET {place}"
        text = f"UPDATE windlass_hot SET crash_count = crash_count + 1 WHERE id = ({row})"
        yield Step(SCRIPT, {"text": text})
        if first_try:
            first_try.clear()
            crossing.wait(THREAD_TIMEOUT)
