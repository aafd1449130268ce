"""Databases for tests: a new one each, on SQLite and on a real PostgreSQL. And child processes."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.stores.databases import migrate_at
from tests.support.programs import Programs
from windlass.errors import ConfigurationError
from windlass.testing.embedded_postgres import EmbeddedPostgres
from windlass.testing.postgres_server import PostgresServer

# No deadlines: on a shared machine they measure the neighbours. `make soak` tries many more examples.
_SHARED_MACHINE = [HealthCheck.too_slow]
settings.register_profile("local", deadline=None, max_examples=50, suppress_health_check=_SHARED_MACHINE)
settings.register_profile("ci", settings.get_profile("local"), print_blob=True)
settings.register_profile("thorough", settings.get_profile("ci"), max_examples=2_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "local"))


MEMORY, NEEDED = Path("/dev/shm"), 4 * 1024**3
if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > NEEDED:
    # What a test writes is gone after it: nothing is gained by waiting for a disk. (Read by pytest's `tmp_path`.)
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))
    if "TMPDIR" not in os.environ and not os.statvfs(MEMORY).f_flag & os.ST_NOEXEC:
        # The clusters of `EmbeddedPostgres`, too: making a database takes a tenth of the time that it takes on a disk.
        # (Not where nothing can be executed: the server's programs may have to be copied there.)
        tempfile.tempdir = str(MEMORY)


TESTS = Path(__file__).parent
SLOW_PLACES = (
    "chaos",
    "cluster",
    "crash",
    "pooler",
    "cli/test_bench.py",
    "cli/test_demo.py",
    "cli/test_graph_watch.py",
    "cli/test_node.py",
    "cli/test_reloader.py",
    "cli/test_supervisor.py",
    "cli/test_tail.py",
    "cli/test_worker.py",
    "cli/test_worker_log.py",
    "cli/test_worker_start.py",
    "client/test_caller_wakeups.py",
    "client/test_other_processes.py",
    "docs/test_example_programs.py",
    "docs/test_examples.py",
    "docs/test_first_job.py",
    "docs/test_site.py",
    "docs/test_testing_guide.py",
    "docs/test_web_examples.py",
    "engine/test_burst.py",
    "engine/test_process_jobs.py",
    "engine/test_process_programs.py",
    "failure/test_secrets_everywhere.py",
    "runtime/processes/test_process.py",
    "stores/test_claim_cost.py",
    "stores/test_expiry_cost.py",
    "stores/test_find_cost.py",
    "stores/test_gate_cost.py",
    "stores/test_model.py",
    "stores/test_processes.py",
    "stores/test_queue_cost.py",
    "stores/test_schedule_cost.py",
    "stores/test_shipped_contract.py",
    "stores/test_signal_cost.py",
    "stores/test_triage_cost.py",
    "testing/test_embedded_postgres.py",
    "testing/test_plugin.py",
)
"""Tests of many processes, of large tables and of long scenarios: half of the time for a few of the tests."""
QUICK_PLACES = (
    "chaos/test_oracle.py",
    "chaos/test_permits.py",
    "crash/test_invariants.py",
)
"""Among them what `make test` runs all the same: the judges of the others."""
ON_SQLITE_FIRST = (
    "cli/test_authorization.py",
    "cli/test_gates.py",
    "cli/test_graph.py",
    "cli/test_signal.py",
    "engine/test_callback_outcomes.py",
    "engine/test_drain.py",
    "engine/test_embedded_drain.py",
    "engine/test_failures.py",
    "engine/test_guarded_strategy.py",
    "engine/test_kept_logs.py",
    "engine/test_lingering_bodies.py",
    "engine/test_results.py",
    "engine/test_retry_rules.py",
    "engine/test_runner.py",
    "engine/test_strange_exits.py",
    "engine/test_target_policy.py",
    "engine/test_targets.py",
    "engine/test_timeouts.py",
    "engine/test_unreadable_results.py",
    "flow/test_guards.py",
    "flow/test_judging.py",
    "flow/test_refused_flows.py",
    "flow/test_result_arguments.py",
    "runtime/test_middleware.py",
    "submission",
)
"""Tests of what happens in a process and is the same on every store: on PostgreSQL `make test-slow` runs them."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is slow by where it stands; `make test` leaves it to `make test-slow`, and CI runs both."""
    for item in items:
        place = item.path.relative_to(TESTS).as_posix() if item.path.is_relative_to(TESTS) else ""
        is_slow = place.startswith(SLOW_PLACES) and place not in QUICK_PLACES
        if is_slow or (place.startswith(ON_SQLITE_FIRST) and _store_of(item) == "postgres"):
            item.add_marker(pytest.mark.slow)


def _store_of(item: pytest.Item) -> object:
    """The store on which this variant of a test runs; None if it has no variants."""
    parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    return next((parameters[name] for name in ("apps", "store_url") if name in parameters), None)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One server per test process: the one WINDLASS_TEST_PG points at, else an embedded one."""
    given = os.environ.get("WINDLASS_TEST_PG")
    if given:
        yield PostgresServer(given)
        return
    with ExitStack() as stack:
        try:
            server = stack.enter_context(EmbeddedPostgres())
        except ConfigurationError as missing:
            if os.environ.get("CI"):
                raise
            pytest.skip(str(missing))
        yield server


@pytest.fixture
def pg_url(postgres_server: PostgresServer) -> Iterator[str]:
    """A new, empty PostgreSQL database."""
    url = postgres_server.create_database()
    yield url
    postgres_server.drop_database(url)


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """A SQLite file that does not exist yet."""
    return f"sqlite:///{tmp_path / 'windlass.db'}"


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file with tables and no rows, to be copied."""
    path = tmp_path_factory.mktemp("sqlite") / "migrated.db"
    migrate_at(f"sqlite:///{path}")
    return path


@pytest.fixture
def file_url(migrated_file: Path, tmp_path: Path) -> str:
    """A migrated SQLite file of this test's own."""
    shutil.copy(migrated_file, tmp_path / "windlass.db")
    return f"sqlite:///{tmp_path / 'windlass.db'}"


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest) -> str:
    """An empty database of each kind in turn: what a test takes that must hold on all of them."""
    fixture = {"sqlite": "sqlite_url", "postgres": "pg_url"}[request.param]
    return str(request.getfixturevalue(fixture))


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Programs]:
    """Starts programs; bodies that run in this process find their files too."""
    with Programs(tmp_path) as started:
        for name, value in started.environ.items():
            monkeypatch.setenv(name, value)
        yield started
