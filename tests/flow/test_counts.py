"""Counting of members: exact when transactions meet, and never waiting."""

import threading
from collections.abc import Iterator

import psycopg
import pytest

from tests.engine.apps import LONG, Apps, count, query, until
from tests.flow.flow_bodies import Jobs
from windlass import JobStatus, Windlass, group
from windlass.domain.ended import Unfinished
from windlass.runtime.unfinished_work import UnfinishedWork


@pytest.fixture
def apps(empty_postgres: str) -> Iterator[Apps]:
    """Applications on PostgreSQL: SQLite has one writer, and no two transactions count at the same time."""
    made = Apps(empty_postgres)
    yield made
    made.close()


@pytest.fixture
def server(apps: Apps) -> Windlass:
    return apps()


def test_a_flush_does_not_wait_for_a_group_that_is_being_counted(server: Windlass, apps: Apps):
    """J8.3, flows §3: it leaves its count, which is settled as soon as the other one is done."""
    jobs = Jobs(server)
    join = group(*(jobs.double.bind(n) for n in range(4))).then(jobs.join).enqueue()
    loose = jobs.step.bind("loose").enqueue()
    with psycopg.connect(apps.url) as other, server.worker():
        other.execute("SELECT id FROM windlass_group FOR UPDATE")
        assert loose.join(timeout=LONG) is JobStatus.SUCCEEDED
        until(lambda: query(apps.url, "SELECT sum(succeeded) FROM windlass_group_delta") == [(4,)])
        assert join.status() is JobStatus.PENDING
        other.commit()
        assert join.result(timeout=LONG) == [0, 2, 4, 6]
    assert count(apps.url, "group_delta") == 0
    assert query(apps.url, "SELECT succeeded, failed FROM windlass_group") == [(4, 0)]


def test_a_cancel_settles_what_it_could_not_count_before_it_returns(server: Windlass, apps: Apps):
    """flows §3: a caller without a worker carries it out by itself."""
    jobs = Jobs(server)
    join = group(jobs.double.bind(1), jobs.double.bind(2)).then(jobs.join).enqueue()
    member = query(apps.url, "SELECT id FROM windlass_hot WHERE due IS NOT NULL")[0][0]
    canceled: list[bool] = []
    with psycopg.connect(apps.url) as other:
        other.execute("SELECT id FROM windlass_group FOR UPDATE")
        caller = threading.Thread(target=lambda: canceled.append(server.cancel(member)))
        caller.start()
        until(lambda: count(apps.url, "group_delta") == 1)
        other.commit()
        caller.join(LONG)
    assert canceled == [True]
    assert (join.status(), count(apps.url, "group_delta")) == (JobStatus.CANCELED, 0)


def test_unfinished_work_is_kept_until_it_is_taken():
    """flows §3: from any thread."""
    work = UnfinishedWork()
    work.add(Unfinished(frozenset({"a"})))
    work.add(Unfinished(frozenset({"b"}), frozenset({"c"})))
    assert work.take() == Unfinished(frozenset({"a", "b"}), frozenset({"c"}))
    assert not work.take()
