"""Commands on a SQLite file that is not there, or was never used: an error that names it, and no new file."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.facts import path_of
from tests.support.waiting import until

ID = "01a1e5cd-0000-7000-8000-000000000000"
LOOKING = [
    ("job", "list"), ("job", "show", ID), ("job", "explain", ID), ("job", "tail", ID), ("job", "graph", ID),
    ("queue", "list"),
    ("node", "list"), ("dlq", "list"), ("dlq", "groups"), ("dlq", "show", ID), ("resource", "list"),
    ("circuit", "list"),
]  # fmt: skip
STEERING = [
    ("job", "cancel", ID, "--yes"), ("job", "pause", ID), ("job", "resume", ID), ("job", "retry", ID),
    ("job", "retry", "--all-failed", "--yes"), ("queue", "pause", "default"), ("queue", "resume", "default"),
    ("node", "drain", "n", "--yes"), ("dlq", "redrive", "--yes"), ("resource", "set", "db", "--max-concurrent", "1"),
    ("circuit", "open", "api"),
]  # fmt: skip
MIGRATE = [("migrate", "--check"), ("migrate", "--status"), ("migrate", "--sql")]


@pytest.fixture
def run(invoke, sqlite_url: str):
    (Path.cwd() / "office.py").write_text("from windlass import Windlass\n\napp = Windlass()\n")

    def run_command(*arguments: str):
        return invoke(*arguments, WINDLASS_APP="office:app", WINDLASS_URL=sqlite_url)

    return run_command


@pytest.mark.parametrize("command", [*LOOKING, *STEERING, *MIGRATE, ("health",)], ids=" ".join)
def test_a_missing_file_is_an_error_and_stays_missing(run, tmp_path: Path, sqlite_url: str, command: tuple[str, ...]):
    """J1.10: a wrong folder is seen at once, and nothing is left behind in it."""
    result = run(*command)
    assert result.exit_code == 1, result.output
    assert f"there is no SQLite database at {path_of(sqlite_url)}" in result.stderr
    assert list(tmp_path.glob("windlass.db*")) == []


@pytest.mark.parametrize("command", [*LOOKING, *STEERING], ids=" ".join)
def test_a_file_that_windlass_never_used_is_an_error_and_stays_unchanged(
    run, tmp_path: Path, sqlite_url: str, command: tuple[str, ...]
):
    """J1.10: neither tables nor lock files are created beside the user's own tables."""
    with closing(sqlite3.connect(path_of(sqlite_url))) as connection:
        connection.execute("CREATE TABLE orders (id)")
    before = Path(path_of(sqlite_url)).read_bytes()
    result = run(*command)
    assert result.exit_code == 1, result.output
    assert "was never used by Windlass" in result.stderr
    assert Path(path_of(sqlite_url)).read_bytes() == before
    assert [path.name for path in tmp_path.glob("windlass.db*")] == ["windlass.db"]


def test_a_relative_path_is_named_as_an_absolute_one(invoke):
    """J1.10."""
    (Path.cwd() / "office.py").write_text("from windlass import Windlass\n\napp = Windlass('sqlite:///shop.db')\n")
    result = invoke("job", "list", "--app", "office:app")
    assert str(Path.cwd() / "shop.db") in result.stderr


def test_health_of_a_file_that_was_never_used_does_not_advise_to_migrate(run, tmp_path: Path, sqlite_url: str):
    """J1.10: SQLite migrates itself."""
    Path(path_of(sqlite_url)).touch()
    result = run("health")
    assert result.exit_code == 1
    assert (
        "it has never been used: no job was stored and no worker ran; start one with `windlass worker" in result.stderr
    )
    assert "migrate" not in result.stderr
    assert json.loads(run("health", "--json").stdout)["healthy"] is False
    assert [path.name for path in tmp_path.glob("windlass.db*")] == ["windlass.db"]


def test_the_script_of_all_migrations_needs_no_file(run, tmp_path: Path):
    """J1.10: `--from 0` asks no store."""
    result = run("migrate", "--sql", "--from", "0")
    assert result.exit_code == 0
    assert "0001_initial" in result.stdout
    assert list(tmp_path.glob("windlass.db*")) == []


def test_migrate_and_worker_make_the_file(run, tmp_path: Path, sqlite_commands):
    """J1.10."""
    assert run("migrate").exit_code == 0
    assert (tmp_path / "windlass.db").exists()
    for path in tmp_path.glob("windlass.db*"):
        path.unlink()
    sqlite_commands.start("worker", "shop:app").says("^ready")
    until((tmp_path / "windlass.db").exists, "the file")
