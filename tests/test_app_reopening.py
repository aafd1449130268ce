"""After `close()` an application opens again at its next use: programs and tests that close it do so more than once."""

import gc
import subprocess
import sys
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.engine import jobs
from tests.engine.apps import LONG, Apps, query, threads_named, until
from tests.engine.fixtures import _nothing_seen, apps, empty_postgres, migrated_postgres
from windlass import JobNotFoundError, JobStatus, Settings, UnknownResourceError, Windlass
from windlass.runtime import exits
from windlass.testing import assert_enqueued, drain, isolated

__all__ = ["_nothing_seen", "apps", "empty_postgres", "migrated_postgres"]  # fixtures


def test_a_closed_application_opens_again_at_its_next_use(apps: Apps):
    """J10.5: enqueueing, reading, waiting and working, several times over; nothing is left when it is closed."""
    app = apps()
    add = app.job(jobs.add)
    before = set(threads_named("windlass"))
    handles = []
    for number in range(3):
        handles.append(add.enqueue(number, 1))
        with app.worker():
            assert handles[-1].result(timeout=LONG) == number + 1
        app.close()
        until(lambda: set(threads_named("windlass")) <= before)
    assert [handle.result(timeout=LONG) for handle in handles] == [1, 2, 3]


async def test_a_lifespan_that_closes_its_application_can_be_entered_twice(apps: Apps):
    """J10.5: what a web program does, and each of its test clients."""
    app = apps()
    add = app.job(jobs.aadd)

    @asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        async with app.worker():
            yield
        await app.aclose()

    for _ in range(2):
        async with lifespan():
            assert await (await add.aenqueue(1, 2)).aresult(timeout=LONG) == 3


def test_a_handle_of_before_follows_its_job_after(apps: Apps):
    """J10.5: and one that waits while the application closes raises, and may be used again."""
    app = apps()
    handle = app.job(jobs.add).enqueue(1, 2)
    app.close()
    assert handle.status() is JobStatus.PENDING
    app.close()
    with app.worker():
        assert handle.result(timeout=LONG) == 3


def test_a_store_in_memory_is_empty_when_it_is_opened_again():
    """J10.5: the schema is made anew, and nothing that was known of the old one counts."""
    app = Windlass("sqlite://", settings=Settings())
    add = app.job(jobs.add)
    app.configure_resource("stripe", max_concurrent=1)
    gone = add.using(queue="billing", resource="stripe").enqueue(1, 2)
    app.close()
    with pytest.raises(JobNotFoundError):
        gone.status()
    with pytest.raises(UnknownResourceError):
        add.using(resource="stripe").enqueue(1, 2)
    kept = add.using(queue="billing").enqueue(3, 4)
    assert [queue.name for queue in app.queues()] == ["billing"]
    with app.worker():
        assert kept.result(timeout=LONG) == 7
    app.close()


def test_an_isolated_application_keeps_the_store_of_the_test_when_it_is_closed():
    """J10.5: a web program's test client closes the application; what it enqueued is looked at after that."""
    app = Windlass("sqlite://", settings=Settings())
    add = app.job(jobs.add)
    with isolated(app):
        add.enqueue(1, 2)
        app.close()
        assert_enqueued(add, 1, 2)
        assert drain(app).succeeded == 1
    app.close()


PROGRAM = """
from windlass import Windlass

app = Windlass("sqlite:///shop.db")

@app.job
def charge(invoice_id: int) -> str:
    return f"charged {invoice_id}"

if __name__ == "__main__":
    charge.enqueue(1)
    app.close()
    app.worker().__enter__()
    print(charge.enqueue(2).result(timeout=90))
"""


def test_a_reopened_application_is_closed_at_exit(tmp_path: Path):
    """J10.5: a worker that was started after a `close` drains and signs off when the program ends."""
    (tmp_path / "shop.py").write_text(PROGRAM)
    ran = subprocess.run(
        [sys.executable, "-W", "error", "shop.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (ran.stdout, ran.stderr, ran.returncode) == ("charged 2\n", "", 0)
    assert query(f"sqlite:///{tmp_path / 'shop.db'}", "SELECT id FROM windlass_node") == []


def test_a_closed_application_is_not_kept_alive():
    app = Windlass("sqlite://", settings=Settings())
    app.job(jobs.add).enqueue(1, 2)
    assert app.close in exits._closing
    app.close()
    known = weakref.ref(app)
    del app
    gc.collect()
    assert known() is None
