"""Runs for tests: on a store, in a folder of their own."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.chaos.driver import Driver
from tests.chaos.facts import Facts
from tests.chaos.faults import Options
from windlass.testing.embedded_postgres import EmbeddedPostgres

Chaos = Callable[[Options], tuple[Driver, Facts]]


@pytest.fixture(scope="session")
def restarted_server() -> Iterator[EmbeddedPostgres]:
    """A server of its own, which runs restart."""
    with EmbeddedPostgres() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest) -> str:
    """Each store in turn."""
    return str(request.param)


@pytest.fixture
def chaos(tmp_path: Path, request: pytest.FixtureRequest) -> Chaos:
    """Runs a plan; its files stay in the test's folder."""

    def run(options: Options) -> tuple[Driver, Facts]:
        server = request.getfixturevalue("restarted_server") if options.store == "postgres" else None
        url = server.create_database() if server else f"sqlite:///{tmp_path / 'windlass.db'}"
        driver = Driver(options, url, tmp_path, server)
        return driver, driver.run()

    return run
