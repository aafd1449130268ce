"""The way to PostgreSQL from an event loop: a statement goes out, its answer comes in, and next to nothing in between.

psycopg connects, copies, and knows how values are read; its cursors take as long for one statement as all the rest of
an enqueue. So statements go straight to libpq: parameters as text, whose types the server infers, results in binary.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

import psycopg
from psycopg import pq
from psycopg.adapt import Transformer

from windlass.domain.clock import monotonic
from windlass.stores.postgres.statements import BEGIN, COMMAND, COMMIT, ROLLBACK, Statement, good

MOST_PREPARED: Final = 100
"""Statements a session keeps prepared: each takes memory on the server."""
CALL_OFF_SECONDS: Final = 5.0
"""How long a server may take to give up a statement, before its connection is given up."""

_IDLE = pq.TransactionStatus.IDLE


class Wire:
    """One connection of the running loop. One statement at a time, each with a limit of its own."""

    __slots__ = (
        *("_answer", "_begins", "_commits", "_encoding", "_loop", "_names", "_number", "_pgconn", "_prepares", "_seen"),
        *("_socket", "_values", "_deadline", "connection", "spoiled"),
    )

    def __init__(self, connection: psycopg.AsyncConnection[Any], *, prepares: bool) -> None:
        self.connection = connection
        self.spoiled = False  # if True it must not be used again, whatever it looks like
        self._deadline = float("inf")
        self._pgconn = connection.pgconn
        # A number of our own: libpq closes its one when the connection is lost, the next socket may get it, and uvloop
        # aborts the process if it still watches that number.
        self._socket = os.dup(connection.fileno())
        self._encoding = connection.info.encoding
        self._values = Transformer(connection)
        self._loop = asyncio.get_running_loop()
        self._answer: asyncio.Future[None] | None = None
        self._prepares = prepares
        self._seen: set[bytes] = set()
        self._names: dict[bytes, bytes] = {}
        self._number = 0
        self._begins = False
        self._commits = False
        # For good: to watch a socket anew for every statement costs as much as to send it.
        self._loop.add_reader(self._socket, self._read)

    def close(self) -> None:
        """Give the connection up; on its loop, or when that is over."""
        if self._socket >= 0:
            if not self._loop.is_closed():
                self._loop.remove_reader(self._socket)
            os.close(self._socket)
            self._socket = -1
        self._pgconn.finish()

    @contextmanager
    def lent(self) -> Iterator[psycopg.AsyncConnection[Any]]:
        """The connection for what only psycopg can do, which watches the socket by itself."""
        self._loop.remove_reader(self._socket)
        try:
            yield self.connection
        finally:
            if not self.connection.closed:
                self._loop.add_reader(self._socket, self._read)

    @property
    def in_order(self) -> bool:
        """Whether it can be used again: it is up, in no transaction, and no answer is on its way."""
        return not (self.spoiled or self._pgconn.pipeline_status) and self._pgconn.transaction_status == _IDLE

    def expect(self, seconds: float | None) -> None:
        """From now on an answer may take that long; None: as long as it takes."""
        self._deadline = float("inf") if seconds is None else monotonic() + seconds

    # ------------------------------------------------------------------ what plans ask for

    def begin(self) -> None:
        """Open a transaction: along with the next statement, to save a round trip."""
        self._begins = True

    async def begun(self) -> None:
        """Open it now, for what does not go through `execute`."""
        if self._begins:
            self._begins = False
            await self.execute(BEGIN, {})

    def commit_with_next(self) -> None:
        """End the transaction along with the next statement, to save another."""
        self._commits = True

    async def commit(self) -> None:
        """End the transaction."""
        if not self._begins:
            await self.execute(COMMIT, {})
        self._begins = False

    async def roll_back(self) -> None:
        """End the transaction, if there still is one; a connection that cannot is not in order, which says enough."""
        self._begins = self._commits = False
        if self._pgconn.transaction_status in (pq.TransactionStatus.INTRANS, pq.TransactionStatus.INERROR):
            self.expect(CALL_OFF_SECONDS)
            with suppress(psycopg.Error, OSError):
                await self.execute(ROLLBACK, {})

    async def execute(self, statement: Statement, params: Mapping[str, Any]) -> Any:
        """Run a statement; what it answers is rows, a row or None, or a count, by its kind."""
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
        return self._value(statement.kind, good(await self._results(), self._encoding)[-1])

    def _remember(self, statement: Statement) -> None:
        """What is run once more is worth preparing."""
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

    # ------------------------------------------------------------------ out and in

    async def execute_together(self, calls: Sequence[tuple[Statement, Mapping[str, Any]]]) -> list[Any]:
        """Several statements in one message, with what they need: the transaction's begin and end, and preparations."""
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
        good(results, self._encoding)
        return [self._value(kind, results[at]) for kind, at in answers]

    def _send(self, statement: Statement, values: Sequence[bytes | None]) -> bytes | None:
        """Send one of several, prepared if it was seen before; answers the name if that is new."""
        pgconn, text = self._pgconn, statement.text
        known = self._names.get(text)
        if known is None and text not in self._seen:
            pgconn.send_query_params(text, values, None, None, pq.Format.BINARY)
            self._remember(statement)
            return None
        if known is None:
            self._number += 1  # never again: what became of one that was called off is not known
            pgconn.send_prepare(b"windlass_%d" % self._number, text)
        pgconn.send_query_prepared(known or b"windlass_%d" % self._number, values, None, pq.Format.BINARY)
        return None if known else b"windlass_%d" % self._number

    async def _results(self) -> list[pq.abc.PGresult]:
        """What the server answers to what was sent, to its end."""
        try:
            return await self._gathered()
        except (asyncio.CancelledError, TimeoutError):
            await self._call_off()
            raise

    async def _gathered(self) -> list[pq.abc.PGresult]:
        pgconn = self._pgconn
        unsent = pgconn.flush() == 1
        results: list[pq.abc.PGresult] = []
        while True:
            if pgconn.is_busy():
                await self._readable(unsent=unsent)
                unsent = False
            result = pgconn.get_result()
            if result is None:
                if not pgconn.pipeline_status:
                    return results
                if pgconn.status != pq.ConnStatus.OK:  # nothing more will come, and libpq would say so for ever
                    raise psycopg.OperationalError("the connection was lost")
            elif result.status == pq.ExecStatus.PIPELINE_SYNC:
                return results
            else:
                results.append(result)

    async def _readable(self, *, unsent: bool) -> None:
        """Wait until libpq has something to give; meanwhile send what did not fit into the socket."""
        self._answer = self._loop.create_future()
        if unsent:
            self._loop.add_writer(self._socket, self._write)
        try:
            await self._answer
        finally:
            self._answer = None
            if unsent:
                self._loop.remove_writer(self._socket)

    def _read(self) -> None:
        try:
            self._pgconn.consume_input()
            if not self._pgconn.is_busy():
                self._answered(None)
        except psycopg.Error as error:
            self._loop.remove_reader(self._socket)
            self._answered(error)

    def _write(self) -> None:
        try:
            if self._pgconn.flush() == 0:
                self._loop.remove_writer(self._socket)
        except psycopg.Error as error:
            self._answered(error)

    def _answered(self, error: BaseException | None) -> None:
        answer = self._answer
        if answer is None or answer.done():
            return
        if error is None:
            answer.set_result(None)
        else:
            answer.set_exception(error)

    # ------------------------------------------------------------------ giving up

    def look(self, now: float) -> None:
        """Now and then: give up what has waited too long, and read unasked.

        uvloop shows a socket in trouble once and then leaves it alone, though there may have been words on it to be
        read before the trouble.
        """
        if self._answer is None:
            return
        if now > self._deadline:
            self._deadline = float("inf")
            self._answered(TimeoutError("no answer in time"))
        else:
            self._read()

    async def _call_off(self) -> None:
        """Nobody wants the answer any more: the server shall stop, and what it says is taken off the line.

        If that fails the connection is not in order, and is closed by whoever lent it out.
        """
        try:
            async with asyncio.timeout(CALL_OFF_SECONDS):
                await self.connection.cancel_safe(timeout=CALL_OFF_SECONDS)
                await self._gathered()
                if self._pgconn.pipeline_status:
                    self._pgconn.exit_pipeline_mode()
        except (psycopg.Error, OSError):
            pass
