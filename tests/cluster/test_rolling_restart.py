"""A deployment: real workers are replaced one after the other while thousands of jobs run."""

from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from tests.crash.programs import bodies
from tests.crash.programs.application import make_app
from tests.support.facts import one, outcomes, rows, statuses
from tests.support.programs import STEADY_LEASES, Program, Programs
from tests.support.waiting import until
from windlass import JobHandle, JobStatus, Windlass

RESTARTS = 4
A_WAVE = 1000
"""Jobs that are stored before each restart."""
JOBS = RESTARTS * A_WAVE


@pytest.fixture
def app(store_url: str) -> Iterator[Windlass]:
    application = make_app(store_url)
    application.migrate()
    yield application
    application.close()


def by_signal(app: Windlass, worker: Program) -> None:
    """What service managers and container platforms send."""
    del app
    worker.terminate()


def by_name(app: Windlass, worker: Program) -> None:
    """What `windlass node drain` does."""
    assert app.drain_node(worker.node)


@pytest.mark.parametrize("leave", [by_signal, by_name])
def test_a_rolling_restart_under_load_loses_nothing_and_runs_nothing_twice(
    app: Windlass, store_url: str, programs: Programs, leave: Callable[[Windlass, Program], None]
):
    """J7.6: not one job lost, run twice or charged an attempt; every worker leaves with exit code 0."""
    workers = [programs.worker(store_url, 20, environ=STEADY_LEASES) for _ in range(2)]
    assert all(worker.node for worker in workers)
    kinds = (bodies.work, bodies.work_in_thread)
    handles: list[JobHandle[int]] = []
    in_the_middle = 0
    for number in range(RESTARTS):
        wave = range(len(handles), len(handles) + A_WAVE)
        handles += app.enqueue_many([app.bind(kinds[n % 2], n, 0.05) for n in wave])
        until(_so_many_ran(programs, len(handles) - A_WAVE + A_WAVE // 10), "work to be under way")
        old, place = workers[number % 2], number % 2
        leave(app, old)
        in_the_middle += len(programs.ran()) < len(handles)
        assert old.exit_code() == 0
        workers[place] = programs.worker(store_url, 20, environ=STEADY_LEASES)
        assert workers[place].node
    assert in_the_middle, "a restart should have come in the middle"
    assert {handle.join(90) for handle in handles} == {JobStatus.SUCCEEDED}
    for word in ("began", "ran"):
        assert Counter(map(int, programs.ran(word))) == Counter(range(JOBS)), f"every body {word} once"
    assert statuses(store_url) == {"SUCCEEDED": JOBS}
    assert rows(store_url, "SELECT DISTINCT attempts, crash_count FROM windlass_done") == [(1, 0)]
    assert set(outcomes(store_url)) <= {"succeeded", "released"}
    for worker in workers:
        worker.terminate()
        assert worker.exit_code() == 0
    assert one(store_url, "SELECT count(*) FROM windlass_node") == 0
    assert one(store_url, "SELECT count(*) FROM windlass_lease WHERE holder IS NOT NULL") == 0, "leases are given back"


def _so_many_ran(programs: Programs, count: int) -> Callable[[], bool]:
    return lambda: len(programs.ran()) >= count
