"""A PostgreSQL database: runs plans on its own connections, and sends wakeups by LISTEN and NOTIFY."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeVar, cast

import psycopg

from windlass import loggers
from windlass.errors import StoreStatementError, StoreUnavailableError
from windlass.runtime.failpoints import are_armed, reached
from windlass.runtime.forks import after_fork
from windlass.stores.database import MOST_RESTARTS, ErrorKind, P, PlanFunction, StoreDataError, Wakeups
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan, RestartPlanError, Step, check_promises
from windlass.stores.postgres import session
from windlass.stores.postgres.connections import AsyncConnections, SyncConnections
from windlass.stores.postgres.dialect import PostgresDialect
from windlass.stores.postgres.listener import Listener, LoopListener, NoNotifications, Notifications
from windlass.stores.postgres.url import CONNECT_TIMEOUT, conninfo, parts_of
from windlass.stores.postgres.wire import Wire, completed

T = TypeVar("T")

logger = loggers.logger("windlass.store")


NOT_SENT = (psycopg.Error, OSError, StoreUnavailableError, StoreStatementError, StoreDataError)
"""A notification that fails with one of these was not sent; the polls of other processes find the work."""


class PostgresDatabase:
    """A PostgreSQL server, reached by a libpq URL. `pooled`: through a transaction pooler."""

    notifies: ClassVar[bool] = True
    migrates_itself: ClassVar[bool] = False

    def __init__(self, url: str, virtual_now: Callable[[], int] | None = None, *, pooled: bool = False) -> None:
        self.dialect: Dialect = PostgresDialect()
        parts = parts_of(url)
        address = f"{parts.get('host', 'localhost')}:{parts.get('port', 5432)}/{parts.get('dbname', '')}"
        self.description = f"PostgreSQL {address}"
        self.wakeup_mode = "in process, else polling (a pooler delivers no LISTEN)" if pooled else "LISTEN/NOTIFY"
        self.known_queues: set[str] = set()
        self._url = url
        self._pooled = pooled
        self.virtual_now = virtual_now
        self._statements = session.Statements(virtual=virtual_now is not None)
        self._start()
        after_fork(self._start)

    def _start(self) -> None:
        """Start without connections; also right after a fork, where the parent's sockets must not be used."""
        self._conninfo = conninfo(self._url, pooled=self._pooled)
        self._sync = SyncConnections(self._conninfo, self.description, pooled=self._pooled)
        self._by_loop: dict[asyncio.AbstractEventLoop, AsyncConnections] = {}
        self._listeners: list[Listener | LoopListener] = []

    def _extra(self) -> Mapping[str, Any]:
        return {"now": self.virtual_now()} if self.virtual_now else {}

    # ------------------------------------------------------------------ plans

    def run(self, plan: PlanFunction[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a plan in a transaction, and run it again after a deadlock or a lost race."""
        return completed(self._run(self._sync, lambda: plan(self.dialect, *args, **kwargs)))

    async def arun(self, plan: PlanFunction[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do `run` on the running loop."""
        return await self._run(self._on_this_loop(), lambda: plan(self.dialect, *args, **kwargs))

    async def _run(self, connections: SyncConnections | AsyncConnections, plan: Callable[[], Plan[T]]) -> T:
        for restart in range(MOST_RESTARTS):
            try:
                wire = await connections.acquire()
                try:
                    return await self._play(plan(), wire)
                finally:
                    connections.release(wire)
            except (psycopg.Error, OSError, UnicodeError, RestartPlanError) as error:
                if restart == 0 and session.only_reads(error):
                    connections.close_idle()
                    continue
                self._raise_unless_restart(error, restart)
        raise AssertionError("unreachable")

    read = run
    aread = arun

    async def _play(self, plan: Plan[T], wire: Wire) -> T:
        extra, statements = self._extra(), self._statements
        alone, answer, committed = True, None, False
        try:
            first = step = next(plan)
            alone = (step.alone or step.autocommit) and not are_armed()
            if not alone:
                wire.begin()
            while True:
                wire.set_timeout(session.limit_of(step))
                if step.final and not alone and not are_armed():
                    assert step.rows is None, "a step of many rows cannot be the last"
                    wire.commit_with_next()
                    committed = True
                following = plan.send(await session.execute(wire, statements, step, extra))
                check_promises(first, step, following)
                assert not committed, f"the step {following.name} follows a final step"
                step = following
        except StopIteration as stop:
            answer = stop.value
        except BaseException as error:
            wire.broken = wire.broken or session.kind_of(error) is ErrorKind.GONE
            await wire.roll_back()
            raise
        if not alone and not committed:
            reached("store.before_commit")
            wire.set_timeout(session.STATEMENT_TIMEOUT)
            await wire.commit()
            reached("store.after_commit")
        return cast("T", answer)

    def _on_this_loop(self) -> AsyncConnections:
        loop = asyncio.get_running_loop()
        connections = self._by_loop.get(loop)
        if connections is None:
            for ended in [known for known in list(self._by_loop) if known.is_closed()]:
                if (unused := self._by_loop.pop(ended, None)) is not None:
                    unused.close()
            connections = self._by_loop[loop] = AsyncConnections(
                self._conninfo, self.description, pooled=self._pooled, timeout=session.STATEMENT_TIMEOUT
            )
        return connections

    def _raise_unless_restart(self, error: BaseException, restart: int) -> None:
        kind = ErrorKind.RESTART if isinstance(error, RestartPlanError) else session.kind_of(error)
        if kind is ErrorKind.RESTART and restart + 1 < MOST_RESTARTS:
            return
        if isinstance(error, RestartPlanError):
            raise error
        if kind is ErrorKind.RESTART:
            raise session.contended(self.description, error) from error
        if kind is ErrorKind.DATA:
            raise StoreDataError(str(error)) from error
        if kind is ErrorKind.GONE:
            raise session.unavailable(self.description, error) from error
        raise session.refused(self.description, error) from None  # its further lines may show values

    def apart(self, *, outlives: bool = False) -> PostgresDatabase:
        """Return the same database with separate pools, so that its users do not wait for the users of this one."""
        del outlives
        return PostgresDatabase(self._url, self.virtual_now, pooled=self._pooled)

    # ------------------------------------------------------------------ wakeups

    def notify(self, channel: str, payload: str) -> None:
        """Send one notification; a failure only costs latency."""
        try:
            self.run(_notify, channel, payload)
        except NOT_SENT as error:
            logger.debug("notification on %s was not sent: %s", channel, error)

    async def anotify(self, channel: str, payload: str) -> None:
        """Send one notification from the running loop."""
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                await self.arun(_notify, channel, payload)
        except NOT_SENT as error:
            logger.debug("notification on %s was not sent: %s", channel, error)

    def listen(self, callback: Callable[[str, str], None], loop: asyncio.AbstractEventLoop | None = None) -> Wakeups:
        """Listen on a separate connection, on `loop` or on a thread. A pooler delivers nothing, so do nothing there."""
        if self._pooled:
            return NoNotifications()
        self._listeners = [listener for listener in self._listeners if not listener.closed]
        notifications = Notifications(callback, self.description)
        listener = (
            Listener(self._conninfo, notifications)
            if loop is None
            else LoopListener(self._conninfo, notifications, loop)
        )
        self._listeners.append(listener)
        return listener

    # ------------------------------------------------------------------ end

    def require(self) -> None:
        """Do nothing: whether the server answers shows at first use."""

    def close(self) -> None:
        """Close listeners and connections; later use opens new ones."""
        for listener in self._listeners:
            listener.close()
        self._sync.close()
        while self._by_loop:
            self._by_loop.popitem()[1].close()
        self.known_queues.clear()
        self._start()

    async def aclose_loop(self) -> None:
        """Close the running loop's connections."""
        connections = self._by_loop.pop(asyncio.get_running_loop(), None)
        if connections is not None:
            connections.close()


def _notify(dialect: Dialect, channel: str, payload: str) -> Plan[None]:
    del dialect
    yield Step("notify", {"channel": channel, "payload": payload}, alone=True)
