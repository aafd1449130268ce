"""PostgreSQL: claims, new keys and changes of a resource wait for each other without deadlocks."""

import threading
from collections.abc import Iterator
from functools import partial

import psycopg
import pytest

from windlass.domain.clock import VirtualClock
from windlass.domain.lanes import Lane
from windlass.stores.claim_order import ClaimRequest
from windlass.stores.dialect import Claimed, Dialect
from windlass.stores.open import open_database
from windlass.stores.plan import Plan, Step
from windlass.stores.plans import claims, limits
from windlass.stores.plans.limits import Limit
from windlass.testing.contract.workbench import NODE, SECOND, Workbench, at_once

ROUNDS = 15


@pytest.fixture
def bench(clean_pg_url: str, clock: VirtualClock) -> Iterator[Workbench]:
    database = open_database(clean_pg_url, clock)
    yield Workbench(database, clock)
    database.close()


def deadlocks(url: str) -> int:
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").fetchone()
    assert row is not None
    return int(row[0])


def test_new_keys_and_changes_of_their_resource_cause_no_deadlock(bench: Workbench, clean_pg_url: str):
    """J6.2: each such circle would stand for a second before the database breaks it."""
    before = deadlocks(clean_pg_url)
    change = partial(bench.database.run, limits.configure_resource, "stripe", Limit(100, None, None, SECOND))
    change()
    over = threading.Event()

    def keep_changing() -> None:
        while not over.is_set():
            change()

    def claim(claimer: int) -> None:
        for number in range(ROUNDS):
            bench.put(2, lane=Lane("stripe").text)
            for key in (f"{claimer}-{number}", f"{claimer}-{number - 1}", f"all-{number}"):
                bench.put(lane=Lane("stripe", key, "gateway").text)
            for claimed in bench.claim():
                assert bench.succeed(claimed)

    changing = threading.Thread(target=keep_changing)
    changing.start()
    try:
        at_once(*[partial(claim, claimer) for claimer in range(4)])
    finally:
        over.set()
        changing.join()
    while claims := bench.claim():
        for claimed in claims:
            assert bench.succeed(claimed)
    bench.database.close()  # sessions that have ended have reported theirs
    assert deadlocks(clean_pg_url) == before


def test_jobs_of_a_key_that_a_concurrent_claim_creates_wait_for_the_next_claim(bench: Workbench, clean_pg_url: str):
    """J6.2: never claimed past its gate, and not waited for out of order."""
    bench.database.run(limits.configure_resource, "stripe", Limit(1, None, None, SECOND))
    lane = Lane("stripe", "acme")
    bench.put(3, lane=lane.text)
    with psycopg.connect(clean_pg_url) as rival:
        rival.execute("SELECT 1 FROM windlass_gate WHERE name = 'resource:stripe' FOR UPDATE")
        counts: list[int] = []
        claimer = threading.Thread(target=lambda: counts.append(len(bench.claim())))
        claimer.start()  # it finds the key missing, and waits for the resource
        _until_a_session_waits(clean_pg_url)
        rival.execute(
            "INSERT INTO windlass_gate (name, cap, in_use, retry_us, used_at) VALUES (%s, 1, 1, 1, 0)",
            (lane.resource_gate,),
        )
    claimer.join()
    assert counts == [0]
    bench.database.run(_leave, lane.resource_gate or "")
    assert len(bench.claim()) == 1
    assert bench.claim() == []


def _leave(dialect: object, gate: str) -> Plan[None]:
    del dialect
    yield Step("count_more", {"name": gate, "change": -1})


def _until_a_session_waits(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for _ in range(10_000):
            waiting = connection.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchone()
            if waiting is not None:
                return
    raise AssertionError("the claim never waited")


def test_a_limit_set_between_the_locks_and_the_claim_of_lanes_counts_every_job(bench: Workbench):
    """J1.7: a limit holds from its commit on, also for jobs behind other gates."""
    bench.put(5, queue="mail", lane=Lane(circuit="gateway").text)
    found = bench.heads()

    def overtaken(dialect: Dialect) -> Plan[Claimed]:
        plan = claims.claim(dialect, ClaimRequest(NODE, found.heads, 5, 8, 0, found.limited, turn=1))
        step = next(plan)
        try:
            while True:
                if step.name == "claim_lane_level":
                    bench.database.run(limits.limit_queue, "mail", Limit(1, None, None))
                step = plan.send((yield step))
        except StopIteration as stop:
            claimed: Claimed = stop.value
            return claimed

    assert bench.database.run(overtaken).claims == []
    assert len(bench.claim()) == 1
