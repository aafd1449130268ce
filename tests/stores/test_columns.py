"""One list of job columns: the tables have them, every statement that stores or copies a job uses all of them."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.stores.test_schema import of_postgres, of_sqlite
from windlass.domain.clock import VirtualClock
from windlass.domain.identity import new_job_id
from windlass.domain.job import NewJob, Payload
from windlass.domain.tags import tags_text
from windlass.stores import columns, queries
from windlass.stores.database import Database
from windlass.stores.plans import archive, reads
from windlass.testing.contract import Workbench

TABLES = {
    "windlass_job": set(columns.JOB),
    "windlass_done": {"id", "queue", "target", *columns.STATE, *columns.END},
    "windlass_attempt": set(columns.ATTEMPT),
    "windlass_archive": {*columns.ARCHIVE, "job"},
}
WRITES = re.compile(r"(?:INSERT INTO|COPY) (windlass_job|windlass_archive) \((.*?)\)", re.DOTALL)
SUBMISSIONS = {"one": 1, "a few": 3, "many": 120}
"""By one statement for one job, by arrays, and by COPY, where the database has these."""


@pytest.fixture
def bench(store: Database, clock: VirtualClock) -> Workbench:
    return Workbench(store, clock)


def test_the_tables_have_the_columns_of_the_lists(migrated_file: Path, migrated_postgres: str):
    """Design §3: a column that the schema has and the list lacks would be lost on the way to the archive."""
    for found, _ in (of_sqlite(migrated_file), of_postgres(migrated_postgres)):
        tables = {table: {column for name, column in found if name == table} for table in TABLES}
        assert tables == TABLES
        hot = {column for name, column in found if name == "windlass_hot"}
        assert hot >= {*columns.STATE, *columns.CLAIM}
    assert set(columns.JOB) >= set(Payload._fields)


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_every_statement_that_writes_jobs_writes_all_their_columns(dialect: str):
    """Design §3: insert, bulk insert, COPY and the way back from the archive."""
    known = queries.load(dialect)
    found = {
        name: (table, set(re.split(r",\s*", written)))
        for name, query in known.items()
        for table, written in WRITES.findall(query.sql)
    }
    assert {name: written for name, (table, written) in found.items() if written != TABLES[table]} == {}
    assert {"insert_jobs", "restore_job", "archive_jobs"} <= found.keys()
    assert dialect == "sqlite" or {"insert_job", "copy_jobs"} <= found.keys()


def value_of(name: str, number: int) -> Any:
    """A value that no other column of the row has."""
    if columns.NEW_JOB_TYPES[name] == "id":
        return new_job_id()
    if name == "priority":
        return 1 + number % 9
    return tags_text((f"tag {number}",)) if name == "tags" else f"{name} {number} \\ \t\n"


@pytest.mark.parametrize("count", SUBMISSIONS.values(), ids=SUBMISSIONS.keys())
def test_every_column_is_stored_archived_and_restored(bench: Workbench, count: int):
    """J7.7: whatever `NewJob` brings is read as it was given, from each of the places a job can be in."""
    given = [
        NewJob(**{name: value_of(name, number) for name in columns.NEW_JOB})._replace(queue="default", lane=None)
        for number in range(count)
    ]
    assert bench.submit(given)[0]
    ids = [job.id for job in given]

    def stored() -> list[dict[str, object]]:
        found = bench.database.read(reads.get_many, ids)
        return [{name: one.job[name] for name in columns.NEW_JOB} for one in found]

    expected = [{name: getattr(job, name) for name in columns.NEW_JOB} for job in given]
    assert stored() == expected
    claims = bench.claim(len(given))
    assert len([claim for claim in claims if bench.fail(claim)]) == count
    before = [replace(bench.job(job), version=0) for job in ids]
    assert bench.database.run(archive.move, ids).jobs == count
    assert stored() == expected
    assert len(bench.database.run(archive.bring_back, ids)) == count
    assert stored() == expected
    assert [replace(bench.job(job), version=0) for job in ids] == before
