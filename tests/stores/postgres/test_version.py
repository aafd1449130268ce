"""Servers that are too old are refused wherever they are met, by an error that names both versions."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner

from tests.support.waiting import until
from windlass import ConfigurationError, Settings, Windlass
from windlass.cli.main import main
from windlass.stores.postgres import version
from windlass.stores.postgres.version import OLDEST, is_too_old, version_text

FUTURE = 99
SHOP = "from windlass import Windlass\n\napp = Windlass(allow=['old_shop'])\n"


def charge(invoice: int) -> int:
    return invoice


@pytest.mark.parametrize(
    ("number", "text", "too_old"),
    [(90624, "9.6.24", True), (140023, "14.23", True), (150000, "15.0", False), (180001, "18.1", False)],
)
def test_versions_are_compared_and_written_as_postgresql_numbers_them(number: int, text: str, too_old: bool):
    """J3.2: PostgreSQL 15 is the oldest."""
    assert OLDEST == 15
    assert version_text(number) == text
    assert is_too_old(number, OLDEST) is too_old


@pytest.fixture
def refused(pg_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A migrated database on a server that is older than the oldest one allowed, and what its refusal says."""
    app = Windlass(pg_url, settings=Settings())
    app.migrate()
    app.close()
    monkeypatch.setattr(version, "OLDEST", FUTURE)
    with psycopg.connect(pg_url) as connection:
        server = version_text(connection.info.server_version)
    return rf"PostgreSQL [\w.]+:\d+/\w+: expected PostgreSQL {FUTURE} or newer, the server is PostgreSQL {server}; up"


USES: dict[str, Callable[[Windlass], object]] = {
    "migrate": lambda app: app.migrate(),
    "a worker's start": lambda app: (app.job(charge), app.worker().__enter__()),
    "enqueue": lambda app: app.job(charge).enqueue(1),
    "aenqueue": lambda app: asyncio.run(app.job(charge).aenqueue(1)),
    "find": lambda app: list(app.find()),
}


@pytest.mark.parametrize("use", USES)
def test_a_server_that_is_too_old_is_refused_at_first_use(pg_url: str, refused: str, use: str):
    """J3.2: by `migrate`, at a worker's start and at first use, naming both versions."""
    app = Windlass(pg_url, settings=Settings())
    with pytest.raises(ConfigurationError, match=refused):
        USES[use](app)
    app.close()


def test_a_connection_to_a_server_that_is_too_old_is_closed(pg_url: str, refused: str):
    """J3.2: a refused server is not left with our sessions."""
    app = Windlass(pg_url, settings=Settings())
    for _ in range(3):
        with pytest.raises(ConfigurationError, match=refused):
            app.migrate()
    with psycopg.connect(pg_url, autocommit=True) as connection:
        sessions = (
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        # The server ends a session a moment after its client has closed the connection.
        until(lambda: connection.execute(sessions).fetchone() == (0,), "the end of refused sessions")
    app.close()


def test_health_reports_that_the_server_is_too_old(pg_url: str, refused: str):
    """J3.2: `health` answers, and says that it is unhealthy and why."""
    app = Windlass(pg_url, settings=Settings())
    found = app.health()
    assert not found
    assert found.store_answers
    with pytest.raises(ConfigurationError, match=refused):
        raise ConfigurationError(found.reason)
    app.close()


@pytest.mark.parametrize("command", ["migrate", "worker", "health"])
def test_commands_refuse_a_server_that_is_too_old(
    pg_url: str, refused: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """J3.2: with exit code 1 and one line that names both versions."""
    (tmp_path / f"old_shop_{command}.py").write_text(SHOP)
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, [command, f"old_shop_{command}:app"], env={"WINDLASS_URL": pg_url})
    assert result.exit_code == 1
    with pytest.raises(ConfigurationError, match=refused):
        raise ConfigurationError(result.stderr)
    assert "Traceback" not in result.output
    assert result.stderr.count(f"expected PostgreSQL {FUTURE}") == 1
