"""PostgreSQL: what claims and looks cost does not grow with jobs that have ended while a snapshot is held."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.stores.costs import buffers
from tests.stores.databases import migrate_at
from windlass.domain.clock import SystemClock
from windlass.domain.job import Claim
from windlass.engine.low_water import MANY, LowWater
from windlass.stores.claim_order import ClaimRequest, Head, Starts
from windlass.stores.database import Database
from windlass.stores.open import open_database
from windlass.stores.plans import claims, queues
from windlass.stores.plans.queues import Heads
from windlass.stores.postgres.dialect import PostgresDialect
from windlass.testing.postgres_server import PostgresServer

pytestmark = pytest.mark.xdist_group("dead entries")

DEAD, LIVE, WANTED = 6_000, 2_000, 100
FIRST_LIVE = 10_000
LEVELS = (2, 5)
ID = "lpad(to_hex(n), 32, '0')::uuid"
SETUP = """
INSERT INTO windlass_node (id, host, pid, version, started_at, heartbeat_at, lease_until, state)
VALUES ('node', 'h', 1, '0', 0, 0, 0, 'alive');
INSERT INTO windlass_queue (name) VALUES ('default')
"""
STORE = f"""
INSERT INTO windlass_hot (id, queue, target, status, due, priority, fence, attempts, crash_count)
SELECT {ID}, 'default', 'shop:charge', 'PENDING',
    CASE WHEN n > {DEAD} THEN n ELSE n * 7919 %% 6011 END, CASE WHEN n %% 2 = 0 THEN 2 ELSE 5 END, 0, 0, 0
FROM generate_series(%s::bigint, %s::bigint) AS n
"""


class Table:
    """A table of jobs of which most have ended, all visible to some transaction."""

    def __init__(self, url: str, connection: psycopg.Connection[Any], database: Database) -> None:
        self.url = url
        self.connection = connection
        self.database = database

    def store(self, first: int, last: int) -> None:
        self.connection.execute(STORE, (first, last))

    def claim(self, starts: Starts, wanted: int = WANTED) -> list[Claim]:
        return self.database.run(claims.claim, request(starts, wanted)).claims

    def claim_cost(self, starts: Starts, *levels: int) -> int:
        return buffers(self.connection, PostgresDialect().claim(request(starts, WANTED, levels or LEVELS), None))

    def look(self, starts: Starts) -> Heads:
        return self.database.read(queues.heads, bool, bool, queues.FIRST_LANE, starts)

    def look_cost(self, starts: Starts) -> int:
        return buffers(self.connection, PostgresDialect().heads(starts))


def request(starts: Starts, wanted: int, levels: tuple[int, ...] = LEVELS) -> ClaimRequest:
    heads = [Head("default", level, 0, None, starts.get(("default", level))) for level in levels]
    return ClaimRequest("node", heads, wanted, 128, 0)


def marks(claimed: list[Claim]) -> Starts:
    return LowWater().after_claim(claimed, 1 << 60).marks


def found_by(look: Heads) -> Starts:
    return LowWater().after_look(look.heads, 0, 1 << 60).marks


@pytest.fixture(scope="module")
def table(postgres_server: PostgresServer) -> Iterator[Table]:
    """6,000 jobs have been claimed and have ended while a snapshot was held; 400 wait."""
    url = postgres_server.create_database()
    migrate_at(url)
    database = open_database(url, SystemClock())
    with psycopg.connect(url, autocommit=True) as connection, psycopg.connect(url) as other:
        for text in SETUP.split(";"):
            connection.execute(text.encode())
        connection.execute("ALTER TABLE windlass_hot SET (autovacuum_enabled = off, fillfactor = 50)")
        found = Table(url, connection, database)
        found.store(1, DEAD)
        other.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        other.execute("SELECT 1 FROM windlass_hot LIMIT 1")
        connection.execute("UPDATE windlass_hot SET status = 'RUNNING', fence = 1, node = 'node'")
        connection.execute("DELETE FROM windlass_hot")
        found.store(FIRST_LIVE, FIRST_LIVE + LIVE - 1)
        connection.execute("VACUUM windlass_hot")
        yield found
    database.close()
    postgres_server.drop_database(url)


def test_a_look_counts_the_entries_it_walks_over(table: Table):
    """J3.1: that many show that low-water marks are worth while; from the marks on there are few."""
    whole = table.look({})
    assert len(whole.heads) == len(LEVELS)
    assert DEAD <= whole.walked < 2 * DEAD
    after = LowWater().begin_look(0.0, hurry=False).after_look(whole.heads, whole.walked, 1 << 60)
    assert after.in_use
    partial = table.look(after.starts)
    assert partial.heads == whole.heads
    assert partial.walked < 10 < MANY


@pytest.mark.parametrize("levels", [(2,), LEVELS], ids=["one level", "levels"])
def test_a_claim_from_the_marks_touches_no_buffers_of_ended_jobs(table: Table, levels: tuple[int, ...]):
    """J3.1: buffers of a claim among 6,000 dead entries, from the first entry and from the marks on."""
    starts = found_by(table.look({}))
    from_first, from_marks = table.claim_cost({}, *levels), table.claim_cost(starts, *levels)
    print(f"{from_first} and {from_marks} buffers")
    assert from_first - from_marks > DEAD * len(levels) / 8
    assert from_marks < 20 * WANTED


def test_a_look_from_the_marks_touches_no_buffers_of_ended_jobs(table: Table):
    """J3.1: the same for the look at the first job of each level."""
    starts = found_by(table.look({}))
    from_first, from_marks = table.look_cost({}), table.look_cost(starts)
    print(f"{from_first} and {from_marks} buffers")
    assert from_first > DEAD / 8
    assert from_marks < 150


def test_claims_from_the_marks_return_every_job_once_and_in_order(table: Table):
    """J3.1: what a mark leaves out is dead, so the order is that of claims from the first entry."""
    table.store(FIRST_LIVE + LIVE, FIRST_LIVE + LIVE + 399)
    found: list[Claim] = []
    starts: Starts = {}
    while claimed := table.claim(starts, 37):
        found += claimed
        starts = {**starts, **marks(claimed)}
    order = [(-claim.priority, claim.due_at) for claim in found]
    assert order == sorted(order)
    assert len({claim.job_id for claim in found}) == len(found) >= 400
    assert table.claim({}) == []


def test_a_job_below_the_mark_is_found_from_the_first_entry(table: Table):
    """J3.1: a job whose transaction took long, or whose due time is in the past."""
    while table.claim({}):
        pass  # what other tests have left, in whichever order they run
    table.store(30_000, 30_001)
    starts = marks(table.claim({}))
    assert starts[("default", 2)].due_at == 30_000
    table.store(29_000, 29_000)
    assert table.claim(starts) == []
    assert [head.due_at for head in table.look({}).heads] == [29_000]
    assert table.look(starts).heads == []
    assert [claim.due_at for claim in table.claim({})] == [29_000]
