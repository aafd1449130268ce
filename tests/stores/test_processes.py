"""Two processes on one database, with the system's clock."""

from contextlib import closing

import pytest

from tests.stores.children import all_at_once
from windlass.domain.clock import SystemClock
from windlass.domain.signal import SignalWait
from windlass.domain.states import JobStatus
from windlass.stores import migrate
from windlass.stores.open import open_database
from windlass.stores.plans import jobs, reads, signal_waits
from windlass.testing.contract.workbench import new_job

JOBS = 300


@pytest.mark.parametrize("kind", ["file_url", "clean_pg_url"])
def test_two_processes_that_drain_one_database_share_it_exactly(kind: str, request: pytest.FixtureRequest):
    """J3.2: disjoint and complete between processes too; every job is retried once and finished once."""
    url = request.getfixturevalue(kind)
    with closing(open_database(url, SystemClock())) as database:
        made = [new_job(queue=f"q{number % 3}", priority=number % 5) for number in range(JOBS)]
        database.run(jobs.submit, [made], ["q0", "q1", "q2"])
        finished = [job for haul in all_at_once(("drain", url, "one"), ("drain", url, "two")) for job in haul]
        assert len(finished) == len(set(finished)) == JOBS
        ids = [job.id for job in made]
        assert {outcome.status for outcome in database.read(reads.outcomes, ids)} == {JobStatus.SUCCEEDED}
        for job_id in ids[::10]:
            history = database.read(reads.history, job_id)
            assert history is not None
            assert [(row["number"], row["outcome"]) for row in history] == [(1, "retried"), (2, "succeeded")]


@pytest.mark.parametrize("kind", ["file_url", "clean_pg_url"])
def test_processes_that_signal_at_once_share_the_waiters_exactly(kind: str, request: pytest.FixtureRequest):
    """J8.5: the sum of their answers is the number of waiters, also of more than one transaction releases."""
    url = request.getfixturevalue(kind)
    count = signal_waits.MOST_SIGNALED + JOBS
    with closing(open_database(url, SystemClock())) as database:
        made = [new_job(wait=SignalWait("k")) for _ in range(count)]
        database.run(jobs.submit, [made], ["default"])
        signaled = [job for answer in all_at_once(*[("signal", url, "k")] * 3) for job in answer]
        assert len(signaled) == len(set(signaled)) == count
        found = database.read(reads.outcomes, [job.id for job in made])
        assert {outcome.status for outcome in found} == {JobStatus.PENDING}


def test_two_processes_that_migrate_at_once_take_turns(store_url: str):
    """Operations: each migration is applied once, also on a SQLite file that did not exist before."""
    names = [migration.name for migration in migrate.migrations("sqlite")]
    applied = all_at_once(("migrate", store_url), ("migrate", store_url), ("migrate", store_url))
    assert sorted(name for batch in applied for name in batch) == names
    with closing(open_database(store_url, SystemClock())) as database:
        migrate.require_current(database)
