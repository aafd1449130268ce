"""What the store holds, asked in SQL past the code under test."""

import sqlite3
from contextlib import closing
from typing import Any
from uuid import UUID

import psycopg


def is_sqlite(url: str) -> bool:
    return url.startswith("sqlite")


def path_of(url: str) -> str:
    """The file behind a SQLite URL."""
    return url.removeprefix("sqlite:///")


def rows(url: str, question: str) -> list[tuple[Any, ...]]:
    """Read from (or write to) the store directly."""
    if is_sqlite(url):
        with closing(sqlite3.connect(path_of(url), timeout=30, isolation_level=None)) as connection:
            return connection.execute(question).fetchall()
    with psycopg.connect(url, autocommit=True) as server:
        cursor = server.execute(question.encode())
        return cursor.fetchall() if cursor.description else []


def one(url: str, question: str) -> Any:
    """The first value of the first row."""
    return rows(url, question)[0][0]


def literal(url: str, job_id: UUID) -> str:
    """A job's id as the store's SQL writes it."""
    return f"'{job_id}'" if is_sqlite(url) else f"'{job_id}'::uuid"


def statuses(url: str) -> dict[str, int]:
    """How many jobs are in each status."""
    question = """SELECT status, count(*) FROM (
        SELECT status FROM windlass_hot UNION ALL SELECT status FROM windlass_done) both_tables GROUP BY status"""
    return dict(rows(url, question))


def outcomes(url: str) -> dict[str, int]:
    """How many attempts of each outcome the history holds."""
    return dict(rows(url, "SELECT outcome, count(*) FROM windlass_attempt GROUP BY outcome"))


def ran(url: str) -> dict[str, int]:
    """The outcomes of attempts that ran: a claim that waits too long for a slot on a busy machine is released."""
    return {outcome: count for outcome, count in outcomes(url).items() if outcome != "released"}


def end_other_sessions(administrator: psycopg.Connection[Any]) -> int:
    """End every session with this database but one's own; answers how many those were."""
    question = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()"""
    return len(administrator.execute(question).fetchall())


def leases_that_ran_out(url: str) -> int:
    """How many nodes have not beaten in time."""
    return int(one(url, f"SELECT count(*) FROM windlass_node WHERE lease_until < {now_of(url)}"))


def now_of(url: str) -> str:
    """The store's own time, in microseconds, as its SQL writes it."""
    if is_sqlite(url):
        return "(julianday('now') - 2440587.5) * 86400000000"
    return "extract(epoch FROM clock_timestamp()) * 1000000"
