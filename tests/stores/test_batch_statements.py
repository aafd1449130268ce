"""What children of batches cost on a server: their flush counts them, and does nothing else."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.stores.recording import recorded
from windlass.domain.clock import VirtualClock
from windlass.domain.ended import Effects, Ended
from windlass.domain.job import Payload
from windlass.domain.states import Move
from windlass.domain.transition import Transition, succeeded
from windlass.stores.dialect import Dialect
from windlass.stores.ending import end
from windlass.stores.open import open_database
from windlass.stores.plan import Plan, Step
from windlass.stores.plans import batches, jobs
from windlass.submission.stored_options import StoredFlow, with_flow
from windlass.testing.contract.batches import LOADER, add, begin, children_of, load
from windlass.testing.contract.flow_setup import FOLLOW_UPS
from windlass.testing.contract.workbench import Workbench

FLUSH = 200


@pytest.fixture
def bench(clean_pg_url: str, clock: VirtualClock) -> Iterator[Workbench]:
    database = open_database(clean_pg_url, clock)
    yield Workbench(database, clock)
    database.close()


def flush(dialect: Dialect, transitions: list[Transition], batch: str) -> Plan[Effects]:
    """End jobs as the completer does, which has their payloads."""
    yield from jobs.apply(dialect, transitions, alone=False)
    payload = Payload("[[],{}]", with_flow(None, StoredFlow(group=batch)), None, None, None, None, 0)
    ended = [Ended(one.job_id, "shop:charge", "default", 2, Move.SUCCEED, payload=payload) for one in transitions]
    return (yield from end(dialect, ended, FOLLOW_UPS))


def names(bench: Workbench, plan: Any, *args: Any) -> list[str]:
    steps: list[Step] = []
    bench.database.run(recorded(steps, plan), *args)
    return [step.name for step in steps]


def test_flush_of_children_is_one_statement_more_than_of_plain_jobs(bench: Workbench):
    """J8.4, J8.7, J4.1: however many they are; the end of the batch takes a handful, once."""
    (batch,) = begin(bench)
    add(bench, batch, 2 * FLUSH)
    load(bench, batch, 2 * FLUSH)
    claims = [succeeded(claim, bench.times(), None, holds_key=False) for claim in bench.claim(2 * FLUSH)]
    assert names(bench, flush, claims[:FLUSH], batch) == ["finish_succeeded", "count_members"]
    last = names(bench, flush, claims[FLUSH:], batch)
    assert last[:2] == ["finish_succeeded", "count_members"]
    assert len(last) <= 12


def test_chunk_is_a_copy_and_a_count(bench: Workbench):
    """J8.4: the same statements for ten children and for hundreds, but for COPY instead of arrays."""
    (batch,) = begin(bench)
    chunk = batches.Chunk(batch, 0, LOADER, children_of(batch, 500))
    assert names(bench, batches.store_chunk, chunk, (), None) == [
        *("lock_batch", "batch_state", "store_now", "copy_jobs", "copy_hot", "extend_batch"),
    ]
