"""Several processes on one store: applications that know different jobs, and eight writers on one SQLite file."""

import re

import pytest

from tests.crash.programs import bodies
from tests.crash.programs.application import make_app
from tests.crash.programs.billing import charge
from tests.crash.programs.shipping import ship
from tests.support.facts import one, rows, statuses
from tests.support.programs import STEADY_LEASES, Programs
from tests.support.waiting import until
from windlass import JobStatus


def test_two_applications_on_one_store_each_run_their_own_jobs(store_url: str, programs: Programs):
    """J6.3, J3.2: what the one does not know it leaves to the other; every job runs once, where it is known."""
    app = make_app(store_url, (charge, ship))
    app.migrate()
    targets = [f"{function.__module__}:{function.__name__}" for function in (charge, ship)]
    workers = [programs.worker(store_url, 10, target, environ=STEADY_LEASES) for target in targets]
    expected = {(target, worker.node) for target, worker in zip(targets, workers, strict=True)}
    handles = app.enqueue_many([app.bind(function, n) for n in range(60) for function in (charge, ship)])
    assert [handle.join(90) for handle in handles] == [JobStatus.SUCCEEDED] * 120
    assert set(rows(store_url, "SELECT DISTINCT target, node FROM windlass_done")) == expected
    assert rows(store_url, "SELECT DISTINCT attempts, crash_count FROM windlass_done") == [(1, 0)]
    assert sorted(int(n) for n in programs.ran()) == sorted([*range(60), *range(60)])
    app.close()
    for worker in workers:
        worker.terminate()
        assert worker.exit_code() == 0


def hammer(url: str, programs: Programs, seconds: float) -> None:
    """Eight processes write for a while; then everything must be there, once, in a sound file."""
    children = [programs.start("hammer", url, seconds, number, environ={}) for number in range(8)]
    reports = [child.says(r"^enqueued (\d+) completed (\d+) longest ([\d.]+)$", seconds + 60) for child in children]
    assert [child.exit_code() for child in children] == [0] * 8
    for child in children:
        assert not re.search("ERROR|Traceback|locked", child.printed), child.printed
    enqueued = [int(report[1]) for report in reports]
    assert min(enqueued) * 5 > sum(enqueued) / 8, f"a writer was starved: {enqueued}"
    assert min(int(report[2]) for report in reports) > 0, "a worker was starved of completions"

    app = make_app(url)
    with app.worker(concurrency=20):
        last = app.bind(bodies.note, -1).enqueue()
        assert last.join(90) is JobStatus.SUCCEEDED
        until(lambda: statuses(url) == {"SUCCEEDED": sum(enqueued) + 1}, "all jobs to succeed")
    app.close()
    ran = programs.ran()
    assert len(ran) == len(set(ran)) == sum(enqueued) + 1
    assert rows(url, "SELECT DISTINCT attempts, crash_count FROM windlass_done") == [(1, 0)]
    assert one(url, "SELECT count(*) FROM windlass_attempt WHERE outcome = 'succeeded'") == sum(enqueued) + 1
    assert one(url, "PRAGMA integrity_check") == "ok"


@pytest.mark.serial
def test_eight_busy_processes_on_one_sqlite_file_lose_nothing_and_none_starves(sqlite_url: str, programs: Programs):
    """J3.2, J7.1: enqueues, claims and completions of eight processes take fair turns."""
    hammer(sqlite_url, programs, 4)


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_eight_processes_hammering_one_sqlite_file_for_a_minute(sqlite_url: str, programs: Programs):
    """J3.2, J7.1: the same for a minute."""
    hammer(sqlite_url, programs, 60)
