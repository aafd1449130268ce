"""`windlass migrate` on both stores."""

import json
import sqlite3
from contextlib import closing

import psycopg

from tests.support.facts import is_sqlite, one, path_of


def apply_by_hand(url: str, script: str) -> None:
    """As a database administrator would, past Windlass."""
    if is_sqlite(url):
        with closing(sqlite3.connect(path_of(url), isolation_level=None)) as connection:
            connection.executescript(script)
    else:
        with psycopg.connect(url, autocommit=True) as server:
            server.execute(script.encode())


def test_it_applies_what_is_missing_once(commands):
    code, said = commands.run("migrate", "shop:app")
    assert code == 0
    assert "applied 0001_initial" in said
    code, said = commands.run("migrate", "shop:app")
    assert code == 0
    assert "nothing to do" in said
    assert one(commands.url, "SELECT count(*) FROM windlass_migration") >= 1


def test_check_and_status_say_how_far_it_is(commands):
    code, said = commands.run("migrate", "shop:app", "--check")
    assert code == 1
    assert "the schema lacks 0001_initial; run `windlass migrate shop:app`" in said
    assert "0001_initial: missing" in commands.run("migrate", "shop:app", "--status")[1]
    commands.run("migrate", "shop:app")
    code, said = commands.run("migrate", "shop:app", "--check")
    assert code == 0
    assert "the schema is current" in said
    status = json.loads(commands.run("migrate", "shop:app", "--status", "--json")[1])
    assert {item["state"] for item in status["items"]} == {"applied"}


def test_the_script_leaves_the_store_as_a_migration_would(commands):
    code, script = commands.run("migrate", "shop:app", "--sql")
    assert code == 0
    apply_by_hand(commands.url, script)
    assert commands.run("migrate", "shop:app", "--check")[0] == 0
    assert "nothing is missing" in commands.run("migrate", "shop:app", "--sql")[1]


def test_the_script_can_be_had_without_the_store(sqlite_commands):
    absent = {"WINDLASS_URL": "postgresql://nobody@127.0.0.1:1/none"}
    code, script = sqlite_commands.run("migrate", "shop:app", "--sql", "--from", "0", environ=absent)
    assert code == 0
    assert "CREATE TABLE windlass_job" in script
    code, said = sqlite_commands.run("migrate", "shop:app", "--check", environ=absent)
    assert code == 1
    assert "does not answer" in said


def test_questions_exclude_each_other(invoke):
    assert invoke("migrate", "x:app", "--check", "--sql").exit_code == 2
    assert invoke("migrate", "x:app", "--from", "1").exit_code == 2
