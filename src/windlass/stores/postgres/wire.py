"""The way to PostgreSQL: a statement goes out, its answer comes in, and next to nothing in between.

psycopg connects, and knows how values are read; its cursors take as long for one statement as all the rest of an
enqueue. So statements go straight to libpq: parameters as text, whose types the server infers, results in binary.

The same coroutines serve event loops (`LoopWire`) and threads (`ThreadWire`). They differ in how they wait: a thread
waits inside, so that there a coroutine never suspends, and `completed` runs it to its end.
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
from windlass.stores.postgres.statements import BEGIN, COMMAND, COMMIT, ROLLBACK, Statement, good

MOST_PREPARED: Final = 100
"""Statements a session keeps prepared: each takes memory on the server."""
CALL_OFF_SECONDS: Final = 5.0
"""How long a server may take to give up a statement, before its connection is given up."""

T = TypeVar("T")

_IDLE = pq.TransactionStatus.IDLE


NO_LIMIT: Final = float("inf")


class Wire:
    """One connection. One statement at a time, each with a limit of its own."""

    __slots__ = (
        *("_begins", "_commits", "_deadline", "_encoding", "_names", "_number", "_pgconn", "_prepares", "_seen"),
        *("_values", "spoiled"),
    )

    def __init__(self, connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any], *, prepares: bool) -> None:
        self.spoiled = False  # if True it must not be used again, whatever it looks like
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
        """Give the connection up."""
        self._pgconn.finish()

    # ------------------------------------------------------------------ how it waits

    async def _readable(self, *, unsent: bool) -> None:
        """Wait until libpq has something to give; meanwhile send what did not fit into the socket."""
        raise NotImplementedError

    async def _flushed(self) -> None:
        """Wait until all that was sent has left."""
        raise NotImplementedError

    async def _call_off(self) -> None:
        """Nobody waits for the answer any more."""
        raise NotImplementedError

    @property
    def in_order(self) -> bool:
        """Whether it can be used again: it is up, in no transaction, and no answer is on its way."""
        return not (self.spoiled or self._pgconn.pipeline_status) and self._pgconn.transaction_status == _IDLE

    def expect(self, seconds: float | None) -> None:
        """From now on an answer may take that long; None: as long as it takes."""
        self._deadline = NO_LIMIT if seconds is None else monotonic() + seconds

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

    async def script(self, text: str) -> list[int]:
        """Run several statements without parameters, such as a migration; answers how many rows each has touched."""
        await self.begun()
        self._pgconn.send_query(text.encode(self._encoding))
        return [result.command_tuples or 0 for result in good(await self._results(), self._encoding)]

    async def copy(self, text: bytes, parts: Iterable[str]) -> int:
        """Send the lines of a COPY part by part; answers how many there were."""
        await self.begun()
        pgconn = self._pgconn
        self.spoiled = True  # until it has ended: what goes wrong in between leaves the server waiting for more
        pgconn.send_query(text)
        await self._flushed()
        while pgconn.is_busy():
            await self._readable(unsent=False)
        if (refusal := pgconn.get_result()) is not None:
            good([refusal], self._encoding)
        for part in parts:
            while pgconn.put_copy_data(part.encode(self._encoding)) == 0:
                await self._flushed()
            await self._flushed()
        pgconn.put_copy_end()
        results = await self._results()
        self.spoiled = False
        return good(results, self._encoding)[-1].command_tuples or 0

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


def completed(work: Coroutine[Any, Any, T]) -> T:
    """Run what awaits nothing but a `ThreadWire`."""
    try:
        work.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    work.close()
    raise AssertionError("it waits for an event loop")
