"""`windlass migrate` on both stores."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from tests.support.facts import is_sqlite, one, path_of

Migrate = Callable[..., tuple[int, str]]


@pytest.fixture
def migrate(invoke, store_url: str) -> Migrate:
    """Run the command on a store; return its exit code and its output."""
    (Path.cwd() / "shop.py").write_text("from windlass import Windlass\n\napp = Windlass()\n")
    if is_sqlite(store_url):
        Path(path_of(store_url)).touch()  # looking at a file that is missing is an error: test_missing_file.py

    def run(*arguments: str, url: str = store_url) -> tuple[int, str]:
        result = invoke("migrate", "shop:app", *arguments, WINDLASS_URL=url)
        return result.exit_code, result.output

    return run


def apply_by_hand(url: str, script: str) -> None:
    """As a database administrator would, past Windlass."""
    if is_sqlite(url):
        with closing(sqlite3.connect(path_of(url), isolation_level=None)) as connection:
            connection.executescript(script)
    else:
        with psycopg.connect(url, autocommit=True) as server:
            server.execute(script.encode())


def test_migrate_applies_missing_migrations_once(migrate, store_url):
    code, printed = migrate()
    assert code == 0
    assert "applied 0001_initial" in printed
    code, printed = migrate()
    assert code == 0
    assert "nothing to do" in printed
    assert one(store_url, "SELECT count(*) FROM windlass_migration") >= 1


def test_check_and_status_report_pending_migrations(migrate):
    code, printed = migrate("--check")
    assert code == 1
    assert "the schema lacks 0001_initial, " in printed
    assert printed.endswith("; run `windlass migrate shop:app`\n")
    assert "0001_initial: pending" in migrate("--status")[1]
    migrate()
    code, printed = migrate("--check")
    assert code == 0
    assert "the schema is current" in printed
    status = json.loads(migrate("--status", "--json")[1])
    assert {item["state"] for item in status["items"]} == {"applied"}
    assert status["next_cursor"] is None


def test_json_lists_pending_migrations(migrate):
    code, printed = migrate("--check", "--json")
    assert code == 1
    output = json.loads(printed)
    assert output["current"] is False
    status = json.loads(migrate("--status", "--json")[1])
    assert [item["name"] for item in status["items"] if item["state"] == "pending"] == output["pending"]
    assert status["items"][0] == {"version": 1, "name": "0001_initial", "state": "pending"}
    migrate()
    code, printed = migrate("--check", "--json")
    assert code == 0
    assert (json.loads(printed)["current"], json.loads(printed)["pending"]) == (True, [])


def test_check_and_script_apply_nothing(migrate):
    for question in ("--status", "--check", "--sql"):
        migrate(question)
    assert "0001_initial: pending" in migrate("--status")[1]


def test_the_script_leaves_the_store_as_a_migration_would(migrate, store_url):
    code, script = migrate("--sql")
    assert code == 0
    apply_by_hand(store_url, script)
    assert migrate("--check")[0] == 0
    assert "nothing is missing" in migrate("--sql")[1]


def test_the_script_can_be_had_without_the_store(migrate):
    absent = "postgresql://nobody@127.0.0.1:1/none"
    code, script = migrate("--sql", "--from", "0", url=absent)
    assert code == 0
    assert "CREATE TABLE windlass_job" in script
    code, printed = migrate("--check", url=absent)
    assert code == 1
    assert "does not answer" in printed


def test_status_is_drawn_at_a_terminal(migrate, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    code, printed = migrate("--status")
    assert code == 0
    assert "0001_initial" in printed
    assert "┃" in printed


def test_check_status_and_script_exclude_each_other(invoke):
    assert invoke("migrate", "x:app", "--check", "--sql").exit_code == 2
    assert invoke("migrate", "x:app", "--from", "1").exit_code == 2
    assert invoke("migrate", "x:app", "--json").exit_code == 2
