"""Outcomes on SQLite are parsed once, into a table of the connection that writes them."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from windlass.domain.clock import VirtualClock
from windlass.domain.job import Claim
from windlass.domain.transition import Times, Transition, retry_at, succeeded
from windlass.stores.database import StoreDataError
from windlass.stores.dialect import Dialect
from windlass.stores.migrate import migrate
from windlass.stores.open import open_database
from windlass.stores.plan import SCRIPT, Plan, Step
from windlass.stores.plans import jobs
from windlass.testing.contract.workbench import FAILURE, Workbench

LARGE = "x" * 60_000
FLUSH = 40
TEMPORARY = "etilqs"
"""In the name of each file that SQLite makes in a folder for temporary files."""


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Workbench]:
    clock = VirtualClock()
    database = open_database(f"sqlite:///{tmp_path / 'jobs.db'}", clock)
    migrate(database)
    yield Workbench(database, clock)
    database.close()


def ended(claim: Claim, result: str | None = None) -> Transition:
    return succeeded(claim, Times(1, 2, 0), result, holds_key=False)


def counted(dialect: Dialect, table: str) -> Plan[Any]:
    """Count rows: the only step of a script is `changes`, the number of rows that it touches."""
    del dialect
    (count,) = yield Step(SCRIPT, {"text": f"UPDATE {table} SET rowid = rowid"})
    return count


def test_nothing_of_a_flush_stays_in_the_table_of_its_connection(bench: Workbench):
    """J7.9: not after successes, other outcomes, refused values and outcomes that came too late."""
    bench.put(8)
    one, late, *others = bench.claim()
    bench.database.run(jobs.apply, [ended(one)])
    assert bench.database.run(jobs.apply, [ended(late)._replace(fence=7), ended(others[0])]) == [False, True]
    bench.database.run(jobs.apply, [retry_at(others[1], Times(1, 2, 0), FAILURE, 0), ended(others[2])])
    bench.database.run(jobs.apply, [ended(others[3])], retried=True)
    with pytest.raises(StoreDataError):
        bench.database.run(jobs.apply, [ended(others[4]), ended(others[4])])
    assert bench.database.run(counted, "temp.windlass_staged") == 0
    assert bench.database.run(counted, "windlass_job") == 8


def test_a_large_flush_needs_no_temporary_file(bench: Workbench):
    """J7.9: the folder for them may be read-only or full where the database is not; flushes after it would fail."""
    bench.put(FLUSH + 1)
    *large, small = bench.claim()
    bench.database.run(jobs.apply, [ended(claim, f'"{LARGE}"') for claim in large])
    bench.database.run(jobs.apply, [ended(small)])
    opened = []
    for number in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # the listing itself had a file
            opened.append(os.readlink(f"/proc/self/fd/{number}"))
    assert [name for name in opened if TEMPORARY in name] == []


def test_a_reader_has_no_such_table(bench: Workbench):
    """J7.6: to make it is a write, which a fork at that moment would hold up for ever."""
    with bench.database._reader() as session:  # type: ignore[attr-defined]
        assert session.connection.execute("SELECT count(*) FROM sqlite_temp_master").fetchone() == (0,)
