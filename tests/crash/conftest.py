"""Stores with workers that can be made to die, a server that can be stopped, a wire that can be cut."""

from collections.abc import Iterator

import pytest

from tests.crash.programs.application import make_app
from tests.support.crashing import Stage, stage_on
from tests.support.pipeline_crashing import PipelineStage, pipeline_stage_on
from tests.support.programs import Programs
from tests.support.tcp_proxy import TcpProxy
from windlass import Windlass
from windlass.testing.embedded_postgres import EmbeddedPostgres


@pytest.fixture
def stage(store_url: str, programs: Programs) -> Iterator[Stage]:
    """An empty store of each kind in turn, with workers that can be made to die."""
    with stage_on(store_url, programs) as ready:
        yield ready


@pytest.fixture
def pipeline_stage(store_url: str, programs: Programs) -> Iterator[PipelineStage]:
    """The same with workers of pipelines."""
    with pipeline_stage_on(store_url, programs) as ready:
        yield ready


@pytest.fixture
def app(store_url: str, programs: Programs) -> Iterator[Windlass]:
    """An application on each kind of store in turn, for tests that need no more of it."""
    del programs  # its environment is where bodies write
    application = make_app(store_url)
    application.migrate()
    yield application
    application.close()


@pytest.fixture(scope="session")
def server() -> Iterator[EmbeddedPostgres]:
    """A server of its own, for tests that stop and start it: they are marked as `xdist_group("postgres_outage")`."""
    with EmbeddedPostgres() as running:
        yield running


@pytest.fixture
def url(server: EmbeddedPostgres) -> Iterator[str]:
    """A new, empty database on that server, which runs before and after the test."""
    server.start_server()
    database = server.create_database()
    yield database
    server.start_server()
    server.drop_database(database)


@pytest.fixture
def outage_app(url: str) -> Iterator[Windlass]:
    """An application on that database."""
    application = make_app(url)
    application.migrate()
    yield application
    application.close()


@pytest.fixture
def proxy(pg_url: str) -> Iterator[TcpProxy]:
    """A wire to a new, empty PostgreSQL database."""
    with TcpProxy(pg_url) as running:
        yield running
