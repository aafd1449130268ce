"""Runs the steps of a plan on one SQLite connection."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

from windlass.stores.plan import SCRIPT, Step
from windlass.stores.queries import Query, load

NOW = "(SELECT windlass_now())"
"""The clock as a subquery, which SQLite runs once for a statement: a call of Python for each row waits for the GIL."""

_NOT_UTF_8 = "Could not decode to UTF-8"


class Session:
    """A connection with the named statements."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self._queries = load("sqlite")
        self._texts: dict[tuple[str, tuple[tuple[str, int], ...]], str] = {}

    @classmethod
    def of_writer(cls, connection: sqlite3.Connection) -> Session:
        """Return a session that can write outcomes, for which it has a temporary table."""
        session = cls(connection)
        # Outcomes must not need a folder for temporary files: it may be read-only or full where the database is not.
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute("PRAGMA temp.auto_vacuum = FULL")  # else a large flush keeps its memory
        connection.execute(session._queries["create_staged"].sql)
        return session

    def execute(self, step: Step) -> Any:
        """Run one step and return its result, by the statement's kind."""
        if step.name == SCRIPT:
            return [self.connection.execute(part).rowcount for part in statements_of(step.params["text"])]
        query = self._queries[step.name]
        text = self._text(query, step.literals)
        if step.rows is None:
            run = self._read if _only_reads(text) else self._one
            return run(query.kind, text, step.params)
        kind, execute = query.kind, self.connection.execute
        if kind == "count":
            return [execute(text, row).rowcount for row in step.rows]
        if kind == "row":
            return [execute(text, row).fetchone() for row in step.rows]
        return [execute(text, row).fetchall() for row in step.rows]

    def _read(self, kind: str, text: str, params: Mapping[str, Any]) -> Any:
        """Run a statement that only reads; texts that are not UTF-8 are returned as bytes, as damaged values are."""
        try:
            return self._one(kind, text, params)
        except sqlite3.OperationalError as error:
            if not str(error).startswith(_NOT_UTF_8):
                raise
        self.connection.text_factory = _text_or_bytes  # only now: it is called for each text
        try:
            return self._one(kind, text, params)
        finally:
            self.connection.text_factory = str

    def _one(self, kind: str, text: str, params: Mapping[str, Any]) -> Any:
        cursor = self.connection.execute(text, params)
        if kind == "rows":
            return cursor.fetchall()
        if kind == "row":
            return cursor.fetchone()
        return cursor.rowcount

    def _text(self, query: Query, literals: Mapping[str, int] | None) -> str:
        key = (query.name, tuple(sorted(literals.items())) if literals else ())
        text = self._texts.get(key)
        if text is None:
            text = query.sql.replace("{now}", NOW)
            for name, value in key[1]:
                text = text.replace(f"{{{name}}}", str(int(value)))
            self._texts[key] = text
        return text


def _only_reads(text: str) -> bool:
    return text.startswith("SELECT") or (text.startswith("WITH") and "RETURNING" not in text)


def _text_or_bytes(stored: bytes) -> str | bytes:
    try:
        return stored.decode()
    except UnicodeDecodeError:
        return stored


def statements_of(script: str) -> list[str]:
    """Return the statements of a migration file, one by one: `executescript` would commit implicitly."""
    parts: list[str] = []
    pending = ""
    for line in script.splitlines():
        pending += line + "\n"
        if sqlite3.complete_statement(pending):
            parts.append(pending.strip())
            pending = ""
    return [part for part in [*parts, pending.strip()] if part]
