"""The application object: where it gets its store from, what it opens when, what can be replaced, how it ends."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tests.engine import jobs
from tests.engine.apps import LONG, ONLY_WAKEUPS, Apps, query, threads_named, until
from tests.engine.fixtures import _nothing_seen, apps, empty_postgres, migrated_postgres
from windlass import (
    ConfigurationError,
    JobStatus,
    MigrationRequiredError,
    NodeSettings,
    Settings,
    StoreUnavailableError,
    Windlass,
)
from windlass.domain.clock import VirtualClock
from windlass.runtime.executors import LoopExecutor
from windlass.spi import Invocation
from windlass.stores import migrate
from windlass.submission.codec import JsonSerializer

__all__ = ["_nothing_seen", "apps", "empty_postgres", "migrated_postgres"]  # fixtures

FIRST_PROGRAM = """
from windlass import Backoff, Windlass

app = Windlass("sqlite:///shop.db")

@app.job(max_retries=3, backoff=Backoff.exponential(1))
def charge(invoice_id: int) -> str:
    return f"charged {invoice_id}"

if __name__ == "__main__":
    with app.worker():
        print(charge.enqueue(42).result(timeout=90))
"""


def test_the_first_program_prints_its_result_and_nothing_else(tmp_path: Path):
    """api.md: no server, no migration step, no warning; the job is stored under the file's module name."""
    (tmp_path / "shop.py").write_text(FIRST_PROGRAM)
    command = [sys.executable, "-W", "error", "shop.py"]
    for _ in range(2):
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
        assert (ran.stdout, ran.stderr, ran.returncode) == ("charged 42\n", "", 0)
    assert query(f"sqlite:///{tmp_path / 'shop.db'}", "SELECT target FROM windlass_job") == [("shop:charge",)] * 2


# ---------------------------------------------------------------------------------------------------------- the store


def test_the_url_falls_back_to_the_environment_and_then_to_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """api.md: argument, WINDLASS_URL, sqlite:///windlass.db."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WINDLASS_URL", raising=False)
    urls = [Windlass().url]
    monkeypatch.setenv("WINDLASS_URL", "sqlite:///from_environment.db")
    urls += [Windlass().url, Windlass("sqlite://").url]
    assert urls == ["sqlite:///windlass.db", "sqlite:///from_environment.db", "sqlite://"]
    assert list(tmp_path.iterdir()) == [], "nothing is opened before it is needed"


@pytest.mark.parametrize("url", ["oracle://scott:tiger@db/shop", "shop.db", "sqlite://host/shop.db", "sqlite:///x?a=1"])
def test_a_url_that_names_no_store_is_refused_without_its_password(url: str):
    """api.md: the error says what to write."""
    with pytest.raises(ConfigurationError, match=r"(?i)sqlite") as caught:
        Windlass(url, settings=Settings())
    assert "tiger" not in str(caught.value)


def test_a_file_that_cannot_be_made_is_an_error_at_first_use(tmp_path: Path):
    """api.md: nothing is opened before it is needed, and then the error says what is wrong."""
    app = Windlass(f"sqlite:///{tmp_path / 'missing' / 'shop.db'}", settings=Settings())
    with pytest.raises(StoreUnavailableError, match="folder"):
        app.job(jobs.add).enqueue(1, 2)
    app.close()


def test_sqlite_migrates_itself_and_a_server_must_be_migrated(pg_url: str, sqlite_url: str):
    """api.md: `app.migrate()` says what it did; without it a server's verbs raise and say how."""
    small, large = (Windlass(url, settings=Settings()) for url in (sqlite_url, pg_url))
    assert small.job(jobs.add).enqueue(1, 2).status() is JobStatus.PENDING
    assert small.migrate() == []
    add = large.job(jobs.add)
    for verb in (lambda: add.enqueue(1, 2), lambda: large.worker().__enter__(), large.handle(UUID(int=7)).status):
        with pytest.raises(MigrationRequiredError, match=r"app\.migrate\(\)"):
            verb()
    assert large.migrate() == [migration.name for migration in migrate.migrations("postgres")]
    assert large.migrate() == []
    with large.worker():
        assert add.enqueue(1, 2).result(timeout=LONG) == 3
    small.close()
    large.close()


def test_a_store_in_memory_is_a_store(app_in_memory: Windlass):
    """api.md: `sqlite://` is the same engine and SQL, gone with its application."""
    add = app_in_memory.job(max_retries=1)(jobs.fail_at_first)
    with app_in_memory.worker():
        assert add.enqueue("once").result(timeout=LONG) == 2
        assert add.using(delay=0.1).enqueue("later").result(timeout=LONG) == 2


@pytest.fixture
def app_in_memory() -> Iterator[Windlass]:
    app = Windlass("sqlite://", settings=Settings())
    yield app
    app.close()


def test_two_applications_share_one_store_and_hammer_it(apps: Apps):
    """J3.2: both enqueue, both work, at the same time; every job runs once and is found by either."""
    first, second = apps(), apps()
    notes = [app.job(jobs.anote) for app in (first, second)]
    placed: list[list[Any]] = [[], []]

    def enqueue(n: int) -> None:
        placed[n] = [notes[n].enqueue(f"{n}.{m}") for m in range(60)]

    with first.worker(concurrency=3), second.worker(concurrency=3):
        threads = [threading.Thread(target=enqueue, args=(n,)) for n in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LONG)
        crosswise = [second.handle(handle.id) for handle in placed[0]] + [
            first.handle(handle.id) for handle in placed[1]
        ]
        results = [handle.result(timeout=LONG) for handle in crosswise]
    assert results == [f"{n}.{m}" for n in range(2) for m in range(60)]
    assert sorted(jobs.seen) == sorted(results)


# -------------------------------------------------------------------------------------------------------- the worker


def test_an_application_runs_one_worker_at_a_time(apps: Apps):
    """api.md: a second one is refused, a later one is not; a start that failed does not count."""
    app = apps()
    with pytest.raises(ConfigurationError, match="nothing allowed"):
        app.worker().__enter__()
    add = app.job(jobs.add)
    for _ in range(2):
        with app.worker():
            with pytest.raises(ConfigurationError, match="already runs a worker"):
                app.worker().__enter__()
            assert add.enqueue(1, 2).result(timeout=LONG) == 3


def test_a_worker_may_be_entered_again_after_it_has_ended(apps: Apps):
    """api.md: leaving ends the node, not the object."""
    app = apps()
    add = app.job(jobs.add)
    worker = app.worker(concurrency=2)
    for _ in range(2):
        with worker:
            assert add.enqueue(1, 2).result(timeout=LONG) == 3
        assert worker.node is None


@pytest.mark.parametrize("wrong", [0, -1, 2.5, "4", True])
def test_a_concurrency_that_is_no_number_is_refused(app_in_memory: Windlass, wrong: Any):
    """api.md: `app.worker(concurrency=…)` checks what it is given."""
    with pytest.raises(ConfigurationError, match="concurrency"):
        app_in_memory.worker(concurrency=wrong)


@pytest.mark.parametrize("wrong", ["default", ["no queue"], [7], [], ()])
def test_queues_that_are_no_names_are_refused(app_in_memory: Windlass, wrong: Any):
    """api.md: a text is not a list of names, a name no queue can have is a mistake, as is no name at all."""
    with pytest.raises(ConfigurationError, match="queue"):
        app_in_memory.worker(queues=wrong)


async def test_run_worker_belongs_to_the_main_thread(app_in_memory: Windlass):
    """design 5: it handles signals; elsewhere the error names the way."""
    app_in_memory.job(jobs.add)
    with pytest.raises(ConfigurationError, match=r"with app\.worker\(\)"):
        await asyncio.to_thread(app_in_memory.run_worker)


def test_concurrency_comes_from_the_settings(apps: Apps):
    """api.md: node.concurrency, unless the worker is given another number."""
    app = apps(settings=Settings(node=NodeSettings(concurrency=1)))
    note = app.job(jobs.anote)
    handles = app.enqueue_many([note.bind(str(n)) for n in range(10)])
    with app.worker():
        assert [handle.result(timeout=LONG) for handle in handles] == [str(n) for n in range(10)]
    assert jobs.seen == [str(n) for n in range(10)], "one after the other, in order"


def test_settings_come_from_the_environment_and_are_checked(monkeypatch: pytest.MonkeyPatch):
    """api.md: `WINDLASS_<SECTION>__<FIELD>`; a bad value is an error that names it."""
    monkeypatch.setenv("WINDLASS_NODE__CONCURRENCY", "7")
    assert Windlass("sqlite://").settings.node.concurrency == 7
    monkeypatch.setenv("WINDLASS_NODE__CONCURRENCY", "many")
    with pytest.raises(ConfigurationError, match=r"(?i)concurrency"):
        Windlass("sqlite://")


# ------------------------------------------------------------------------------------------------------- replacing


class Everything:
    """A target policy, an instance resolver and a serializer of the user's own."""

    def __init__(self) -> None:
        self.asked: list[object] = []

    def allows(self, target: str) -> bool:
        self.asked.append(target)
        return target.startswith("tests.engine.jobs:")

    def resolve(self, cls: type) -> Any:
        self.asked.append(cls)
        return cls()


def test_a_custom_target_policy_decides(apps: Apps):
    """J6.3: `target_policy=`; with it a worker needs nothing registered."""
    policy = Everything()
    app = apps(target_policy=policy)
    with app.worker():
        assert app.bind(jobs.add, 1, 2).enqueue().result(timeout=LONG) == 3
    assert "tests.engine.jobs:add" in policy.asked


def test_a_custom_instance_resolver_supplies_objects(apps: Apps):
    """J1.1: `instance_resolver=`; `provide` belongs to the default one."""
    resolver = Everything()
    app = apps(instance_resolver=resolver, allow=["tests.engine.jobs"])
    with app.worker():
        assert app.bind(jobs.Counter.count, 3).enqueue().result(timeout=LONG) == 3
    assert resolver.asked == [jobs.Counter]
    with pytest.raises(ConfigurationError, match="instance resolver"):
        app.provide(jobs.Counter())


class Shouting(JsonSerializer):
    """A serializer that adds to what it stores."""

    __slots__ = ()

    def encode_result(self, value: Any, annotation: Any, limit: int) -> tuple[str | None, str | None]:
        return super().encode_result(f"{value}!", annotation, limit)


def test_a_custom_serializer_writes_results(apps: Apps):
    """api.md: `serializer=`."""
    app = apps(serializer=Shouting())
    note = app.job(jobs.note)
    with app.worker():
        assert note.enqueue("hello").result(timeout=LONG) == "hello!"


class Inline:
    """An executor that calls bodies where it stands."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.closed = 0

    def executor(self, kind: str) -> Any:
        return self

    async def run(self, invocation: Invocation, /) -> object:
        self.ran.append(invocation.target)
        return invocation.function(*invocation.args, **invocation.kwargs)

    async def close(self) -> None:
        self.closed += 1


def test_custom_executors_run_bodies(apps: Apps):
    """J4.2: `executors=`; they are closed when the worker leaves."""
    inline = Inline()
    app = apps(executors=inline)
    name = app.job(jobs.thread_name)
    with app.worker():
        assert name.enqueue().result(timeout=LONG) == "windlass-worker"
    assert inline.ran == [name.target]
    assert inline.closed > 0


class Counting(LoopExecutor):
    """Like the one for coroutines, and counts."""

    ran = 0

    def executor(self, kind: str) -> Any:
        return self

    async def run(self, invocation: Invocation, /) -> object:
        self.ran += 1
        return await super().run(invocation)


def test_an_executor_derived_from_the_default_is_called(apps: Apps):
    """J4.2: the short way that ours go is not taken past it."""
    counting = Counting()
    app = apps(executors=counting)
    add = app.job(jobs.aadd)
    with app.worker():
        assert add.enqueue(1, 2).result(timeout=LONG) == 3
    assert counting.ran == 1


class Radio:
    """A coordinator that carries notifications between applications of one process."""

    def __init__(self) -> None:
        self.received: list[tuple[str, int]] = []
        self.callbacks: list[Callable[[str, int], None]] = []
        self.closed = 0

    def notify_new_work(self, queue: str, priority: int) -> None:
        self.received.append((queue, priority))
        for callback in self.callbacks:
            callback(queue, priority)

    def listen(self, callback: Callable[[str, int], None]) -> None:
        self.callbacks.append(callback)

    def close(self) -> None:
        self.closed += 1


def test_a_custom_coordinator_wakes_nodes(apps: Apps):
    """J3.6: `coordinator=` replaces the store's own notifications, and is closed with the application."""
    radio = Radio()
    working, asking = apps(settings=ONLY_WAKEUPS, coordinator=radio), apps(coordinator=radio)
    working.job(jobs.add)
    add = asking.job(jobs.add)
    with working.worker():
        assert add.using(queue="sums", priority=3).enqueue(1, 2).result(timeout=LONG) == 3
        assert add.enqueue(3, 4).result(timeout=LONG) == 7
    assert radio.received == [("sums", 3), ("default", 2)]
    asking.close()
    assert radio.closed == 1


def test_due_times_are_read_from_a_custom_clock(apps: Apps):
    """api.md: `clock=`; time passes when the test says so."""
    clock = VirtualClock()
    app = apps(clock=clock)
    add = app.job(jobs.add)
    handle = add.using(delay=3600).enqueue(1, 2)
    with app.worker():
        assert add.enqueue(1, 1).result(timeout=LONG) == 2
        assert handle.status() is JobStatus.PENDING
    clock.advance(3600)
    with app.worker():
        assert handle.result(timeout=LONG) == 3
    assert app.get(handle.id).due_at == clock.now()


# ----------------------------------------------------------------------------------------------------------- the end


def test_closing_ends_everything_and_may_be_done_twice(apps: Apps):
    """api.md: no thread, worker or connection is left."""
    app = apps()
    add = app.job(jobs.add)
    before = set(threads_named("windlass"))
    app.worker().__enter__()
    assert add.enqueue(1, 2).result(timeout=LONG) == 3
    app.close()
    app.close()
    until(lambda: set(threads_named("windlass")) <= before)


def test_a_program_that_forgets_to_close_ends_all_the_same(tmp_path: Path):
    """design 5: what is owed is sent at exit, and no thread keeps the process alive."""
    program = FIRST_PROGRAM.replace("with app.worker():", "if app.worker().__enter__():")
    (tmp_path / "shop.py").write_text(program)
    ran = subprocess.run(
        [sys.executable, "shop.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert (ran.stdout, ran.stderr, ran.returncode) == ("charged 42\n", "", 0)
    assert query(f"sqlite:///{tmp_path / 'shop.db'}", "SELECT id FROM windlass_node") == [], "it has signed off"


def test_an_application_shows_its_store_and_no_password():
    """api.md: for logs and notebooks."""
    assert repr(Windlass("sqlite:///shop.db")).startswith("<Windlass on SQLite shop.db")
    shown = repr(Windlass("postgresql://shop:hunter2@db.example/shop"))
    assert shown.startswith("<Windlass on PostgreSQL db.example")
    assert "hunter2" not in shown
