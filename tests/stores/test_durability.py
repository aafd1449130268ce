"""A commit is on disk before it is answered, unless configured otherwise."""

from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from windlass.domain.clock import SystemClock
from windlass.stores.open import open_database
from windlass.stores.postgres import url
from windlass.stores.sqlite.files import connect

FULL, NORMAL = 2, 1


@pytest.mark.parametrize(
    ("option", "level"), [("", FULL), ("?synchronous=full", FULL), ("?synchronous=normal", NORMAL)]
)
def test_sqlite_forces_every_commit_to_the_disk(tmp_path: Path, option: str, level: int):
    """The promise: a committed enqueue is never lost, not to a power cut either."""
    path = tmp_path / "shop.db"
    database = open_database(f"sqlite:///{path}{option}", SystemClock())
    chosen = "FULL" if level == FULL else "NORMAL"
    assert f"synchronous={chosen}" in database.description
    database.close()
    with closing(connect(str(path), chosen, lambda: 0)) as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (level,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_sessions_of_ours_leave_the_durability_of_a_server_as_it_is(pg_url: str):
    """The promise: the default does not trade durability for speed."""
    with psycopg.connect(url.conninfo(pg_url, pooled=False)) as session:
        assert session.execute("SHOW synchronous_commit").fetchone() == ("on",)
