"""A thin client on libpq: sends statements and reads their results.

psycopg connects and converts values, but its cursors take as long for one statement as the rest of an enqueue. So
statements go straight to libpq: parameters as text, whose types the server infers, results in binary.

The same coroutines serve event loops (`LoopWire`) and threads (`ThreadWire`), which differ in how they wait. On a
thread a wait blocks inside the coroutine, which therefore never suspends; `completed` runs it to its end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

import psycopg
from psycopg import pq
from psycopg.adapt import Transformer

from windlass.domain.clock import monotonic
from windlass.stores.postgres.statements import BEGIN, COMMAND, COMMIT, ROLLBACK, Statement, checked

MOST_PREPARED: Final = 100
"""Number of statements that a session keeps prepared: each takes memory on the server."""
CANCEL_SECONDS: Final = 5.0
"""Seconds that a server may take to cancel a statement before its connection is closed."""

T = TypeVar("T")

_IDLE = pq.TransactionStatus.IDLE


NO_LIMIT: Final = float("inf")


class Wire:
    """One connection: runs one statement at a time, each with its own timeout."""

    __slots__ = (
        *("_begins", "_commits", "_deadline", "_encoding", "_names", "_number", "_pgconn", "_prepares", "_seen"),
        *("_values", "broken"),
    )

    def __init__(self, connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any], *, prepares: bool) -> None:
        self.broken = False  # if True it must not be used again
        self._deadline = NO_LIMIT
        self._pgconn = connection.pgconn
        self._encoding = connection.info.encoding
        self._values = Transformer(connection)
        self._prepares = prepares
        self._seen: set[bytes] = set()
        self._names: dict[bytes, bytes] = {}
        self._number = 0
        self._begins = False
        self._commits = False

    def close(self) -> None:
        """Close the connection."""
        self._pgconn.finish()

    # ------------------------------------------------------------------ waits

    async def _wait_readable(self, *, unsent: bool) -> None:
        """Wait until libpq has a result; meanwhile send what did not fit into the socket buffer."""
        raise NotImplementedError

    async def _flush(self) -> None:
        """Wait until everything is written to the socket."""
        raise NotImplementedError

    async def _cancel_statement(self) -> None:
        """Cancel a statement whose caller no longer waits."""
        raise NotImplementedError

    @property
    def reusable(self) -> bool:
        """Whether it can be used again: it is open, in no transaction, and no answer is outstanding."""
        return not (self.broken or self._pgconn.pipeline_status) and self._pgconn.transaction_status == _IDLE

    def set_timeout(self, seconds: float | None) -> None:
        """Set how many seconds from now an answer may take; None: no limit."""
        self._deadline = NO_LIMIT if seconds is None else monotonic() + seconds

    # ------------------------------------------------------------------ transactions and statements

    def begin(self) -> None:
        """Open a transaction with the next statement, which saves a round trip."""
        self._begins = True

    async def begin_now(self) -> None:
        """Send a pending BEGIN now, before something that does not go through `execute`."""
        if self._begins:
            self._begins = False
            await self.execute(BEGIN, {})

    def commit_with_next(self) -> None:
        """Commit the transaction with the next statement, which saves another round trip."""
        self._commits = True

    async def commit(self) -> None:
        """Commit the transaction."""
        if not self._begins:
            await self.execute(COMMIT, {})
        self._begins = False

    async def roll_back(self) -> None:
        """Roll back the transaction, if there is one; a connection on which that fails is not reusable."""
        self._begins = self._commits = False
        if self._pgconn.transaction_status in (pq.TransactionStatus.INTRANS, pq.TransactionStatus.INERROR):
            self.set_timeout(CANCEL_SECONDS)
            with suppress(psycopg.Error, OSError):
                await self.execute(ROLLBACK, {})

    async def execute(self, statement: Statement, params: Mapping[str, Any]) -> Any:
        """Run a statement; return rows, a row or None, or a count, by its kind."""
        text = statement.text
        name = self._names.get(text)
        if self._begins or self._commits or (name is None and text in self._seen):
            return (await self.execute_together([(statement, params)]))[0]
        values = self._parameters(statement, params)
        if name is not None:
            self._pgconn.send_query_prepared(name, values, None, pq.Format.BINARY)
        else:
            self._pgconn.send_query_params(text, values, None, None, pq.Format.BINARY)
            self._remember(statement)
        return self._value(statement.kind, checked(await self._results(), self._encoding)[-1])

    async def script(self, text: str) -> list[int]:
        """Run several statements without parameters, such as a migration; return the row count of each."""
        await self.begin_now()
        self._pgconn.send_query(text.encode(self._encoding))
        return [result.command_tuples or 0 for result in checked(await self._results(), self._encoding)]

    async def copy(self, text: bytes, parts: Iterable[str]) -> int:
        """Send the lines of a COPY part by part; return their number."""
        await self.begin_now()
        pgconn = self._pgconn
        self.broken = True  # until the end: after an error in between, the server still waits for lines
        pgconn.send_query(text)
        await self._flush()
        while pgconn.is_busy():
            await self._wait_readable(unsent=False)
        if (refusal := pgconn.get_result()) is not None:
            checked([refusal], self._encoding)
        for part in parts:
            while pgconn.put_copy_data(part.encode(self._encoding)) == 0:
                await self._flush()
            await self._flush()
        pgconn.put_copy_end()
        results = await self._results()
        self.broken = False
        return checked(results, self._encoding)[-1].command_tuples or 0

    def _remember(self, statement: Statement) -> None:
        """Record a statement that was run: it is prepared when it is run again."""
        if self._prepares and statement.kind != COMMAND and len(self._seen) < MOST_PREPARED:
            self._seen.add(statement.text)

    def _parameters(self, statement: Statement, params: Mapping[str, Any]) -> list[bytes | None]:
        return [self._parameter(value) if (value := params[name]) is not None else None for name in statement.names]

    def _parameter(self, value: Any) -> bytes:
        if isinstance(value, str):
            data = value.encode(self._encoding)
            if b"\0" in data:
                raise psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes")
            return data
        if isinstance(value, int):
            return b"%d" % value
        if isinstance(value, float):
            return repr(value).encode()
        raise TypeError(f"a parameter of a statement is a text, a number or None, got {type(value).__name__}")

    def _value(self, kind: str, result: pq.abc.PGresult) -> Any:
        if kind in ("count", COMMAND):
            return result.command_tuples or 0
        self._values.set_pgresult(result)
        if kind == "rows":
            return self._values.load_rows(0, result.ntuples, tuple)
        return self._values.load_row(0, tuple) if result.ntuples else None

    # ------------------------------------------------------------------ messages

    async def execute_together(self, calls: Sequence[tuple[Statement, Mapping[str, Any]]]) -> list[Any]:
        """Run several statements in one message, with pending BEGIN, COMMIT and preparations."""
        values = [self._parameters(*call) for call in calls]
        pgconn = self._pgconn
        begins, self._begins = self._begins, False
        commits, self._commits = self._commits, False
        pgconn.enter_pipeline_mode()
        if begins:
            pgconn.send_query_params(BEGIN.text, None)
        names = [self._send(statement, row) for (statement, _), row in zip(calls, values, strict=True)]
        if commits:
            pgconn.send_query_params(COMMIT.text, None)
        pgconn.pipeline_sync()
        results = await self._results()
        pgconn.exit_pipeline_mode()
        answers, at = [], int(begins)
        for (statement, _), name in zip(calls, names, strict=True):
            if name is not None:
                if results[at].status == pq.ExecStatus.COMMAND_OK:
                    self._names[statement.text] = name
                at += 1
            answers.append((statement.kind, at))
            at += 1
        checked(results, self._encoding)
        return [self._value(kind, results[at]) for kind, at in answers]

    def _send(self, statement: Statement, values: Sequence[bytes | None]) -> bytes | None:
        """Send one of several statements, prepared if it was run before; return its name if that is new."""
        pgconn, text = self._pgconn, statement.text
        known = self._names.get(text)
        if known is None and text not in self._seen:
            pgconn.send_query_params(text, values, None, None, pq.Format.BINARY)
            self._remember(statement)
            return None
        if known is None:
            self._number += 1  # never reused: a canceled statement may or may not have been prepared
            pgconn.send_prepare(b"windlass_%d" % self._number, text)
        pgconn.send_query_prepared(known or b"windlass_%d" % self._number, values, None, pq.Format.BINARY)
        return None if known else b"windlass_%d" % self._number

    async def _results(self) -> list[pq.abc.PGresult]:
        """Return all results of what was sent."""
        try:
            return await self._read_results()
        except (asyncio.CancelledError, TimeoutError):
            await self._cancel_statement()
            raise

    async def _read_results(self) -> list[pq.abc.PGresult]:
        pgconn = self._pgconn
        unsent = pgconn.flush() == 1
        results: list[pq.abc.PGresult] = []
        while True:
            if pgconn.is_busy():
                await self._wait_readable(unsent=unsent)
                unsent = False
            result = pgconn.get_result()
            if result is None:
                if not pgconn.pipeline_status:
                    return results
                if pgconn.status != pq.ConnStatus.OK:  # nothing more will come; libpq would return None for ever
                    raise psycopg.OperationalError("the connection was lost")
            elif result.status == pq.ExecStatus.PIPELINE_SYNC:
                return results
            else:
                results.append(result)


def completed(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that awaits nothing but a `ThreadWire`, and return its result."""
    try:
        work.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    work.close()
    raise AssertionError("the coroutine waits for an event loop")
