"""What a plan costs, counted by the databases themselves."""

import sqlite3
from typing import Any

import psycopg

from windlass.stores.plan import Plan, Step, drive
from windlass.stores.postgres.session import Statements
from windlass.stores.sqlite.session import Session


def run_step(connection: psycopg.Connection[Any], statements: Statements, step: Step) -> Any:
    """Run a step of a plan by cursors, in a transaction of the test's own."""
    query = statements.query(step)
    text: Any = statements.text(query, step.literals)
    answers = []
    for params in [step.params] if step.rows is None else step.rows:
        cursor = connection.execute(text, params, binary=True)
        rows = cursor.fetchall() if cursor.description else []
        answers.append({"rows": rows, "row": rows[0] if rows else None, "count": cursor.rowcount}[query.kind])
    return answers[0] if step.rows is None else answers


def buffers(connection: psycopg.Connection[Any], plan: Plan[Any]) -> int:
    """Buffers that all statements of a plan touch on PostgreSQL."""
    statements = Statements()
    touched = 0

    def execute(step: Step) -> Any:
        nonlocal touched
        query = statements.query(step)
        text: Any = statements.text(query, step.literals)
        found: Any = None
        for _ in range(2):  # the second look pays for nothing the planner reads; what it writes is taken back
            with connection.transaction(force_rollback=True):
                answer = connection.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {text}", step.params).fetchone()
            assert answer is not None
            found = answer[0][0]["Plan"]
        touched += found["Shared Hit Blocks"] + found["Shared Read Blocks"]
        cursor = connection.execute(text, step.params)
        count, rows = cursor.rowcount, cursor.fetchall() if cursor.description else []
        plain = [tuple(str(value) if index == 0 else value for index, value in enumerate(row)) for row in rows]
        return {"rows": plain, "row": plain[0] if plain else None, "count": count}[query.kind]

    drive(plan, next(plan), execute)
    return max(touched, 1)


def instructions(connection: sqlite3.Connection, plan: Plan[Any]) -> int:
    """Instructions of SQLite's machine that a plan takes."""
    taken = 0

    def another() -> int:
        nonlocal taken
        taken += 1
        return 0

    connection.set_progress_handler(another, 1)
    drive(plan, next(plan), Session(connection).execute)
    connection.set_progress_handler(None, 0)
    return max(taken, 1)
