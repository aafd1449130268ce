"""PgBouncer for every test that asks; a missing one skips here, and fails where it should have been installed."""

from collections.abc import Iterator

import pytest

from tests.support.pgbouncer import PgBouncer, could_be_installed, program
from windlass.testing.postgres_server import PostgresServer


@pytest.fixture(scope="session")
def pgbouncer(postgres_server: PostgresServer) -> Iterator[PgBouncer]:
    """One per test process, in front of the server that all tests share."""
    if program() is None:
        reason = "pgbouncer is not installed: `apt-get install pgbouncer`, or put one on the PATH"
        if could_be_installed():
            pytest.fail(reason)
        pytest.skip(reason)
    with PgBouncer(postgres_server.url) as running:
        yield running


@pytest.fixture
def pooled_url(pgbouncer: PgBouncer, pg_url: str) -> str:
    """A new, empty database, reached through the pooler."""
    return pgbouncer.url(pg_url)
