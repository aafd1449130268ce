"""The loop of a node.

On its own thread (`with`), on the caller's loop (`async with`), or in the main thread (`run`).
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterable
from datetime import timedelta
from types import TracebackType
from typing import Self

from windlass import loggers
from windlass.domain.durations import seconds
from windlass.domain.keys import check_queue
from windlass.errors import ConfigurationError, StoreUnavailableError
from windlass.node import Node
from windlass.node_drain import NodeDrain
from windlass.parts import Parts
from windlass.runtime import exits, garbage, loops, thread_switches
from windlass.runtime.forks import after_fork
from windlass.runtime.local_node import LocalNode
from windlass.runtime.processes.lifetime import refuse_worker
from windlass.store_wait import StoreWait

logger = loggers.logger("windlass.worker")

Timeout = float | timedelta | None

CLEAN, FAILED, FORCED = 0, 1, 3
"""Exit codes of a worker: drained, could not start or lost its store, forced to stop."""


class Worker:
    """A node of this process, made by `app.worker(…)`.

    ```python
    with app.worker(concurrency=20):
        print(charge.enqueue(42).result(timeout=10))
    ```
    """

    def __init__(
        self,
        parts: Callable[[], Parts],
        concurrency: int,
        queues: Iterable[str] | None,
        entered: Callable[[Worker | None], None],
        drain_timeout: Timeout = None,
    ) -> None:
        refuse_worker()
        self._parts = parts
        self._concurrency = _checked_concurrency(concurrency)
        self._queues = _checked_queues(queues)
        self._drain_timeout = None if drain_timeout is None else seconds(drain_timeout, "drain_timeout")
        self._entered = entered
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self.node: Node | None = None
        """The running node; None before and after."""
        self.failure: StoreUnavailableError | None = None
        """What ended the worker unexpectedly: its SQLite file was deleted or replaced."""
        self._local_node: LocalNode | None = None
        self._runs_alone = False
        self._drain: NodeDrain | None = None
        after_fork(self._forget)

    def _forget(self) -> None:
        """Reset in a forked child: node, thread and loop stayed with the parent."""
        if self.node is not None:
            self._entered(None)
        self.node = self._loop = self._thread = self._drain = None

    # ------------------------------------------------------------------ with: a loop in a thread

    def __enter__(self) -> Self:
        self._entered(self)
        started = threading.Event()
        failure: list[BaseException] = []
        self._thread = threading.Thread(
            target=self._thread_main, args=(started, failure), name="windlass-worker", daemon=True
        )
        self._thread.start()
        started.wait()
        if failure:
            self._thread.join()
            self._entered(None)
            raise failure[0]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.drain()

    def _thread_main(self, started: threading.Event, failure: list[BaseException]) -> None:
        loop = self._loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        try:
            loop.run_until_complete(self._start())
        except BaseException as error:  # noqa: BLE001 - handed to the thread that waits for the start
            failure.append(error)
            loop.close()
            return
        finally:
            started.set()
        node = self.node
        try:
            loops.outlive_exits(loop.run_forever)
        finally:
            loops.close(loop)
            if node is not None:
                node.departure.loop_closed()

    # ------------------------------------------------------------------ async with: the caller's loop

    async def __aenter__(self) -> Self:
        self._entered(self)
        try:
            await self._start()
        except BaseException:
            self._entered(None)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.adrain()

    async def _start(self) -> None:
        parts = await asyncio.to_thread(self._parts)
        node = Node(parts, self._concurrency, self._queues)
        await node.start()
        self.failure = None
        self._local_node = parts.local_node
        self._local_node.attach(node.wakeups)
        self.node, self._drain = node, NodeDrain(node, self._drain_timeout, self._ended, embedded=not self._runs_alone)

    def _ended(self) -> None:
        if self.node is not None:
            self.failure = self.node.departure.loss
        if self._local_node is not None:
            self._local_node.detach()
        self.node = self._drain = None
        self._entered(None)

    # ------------------------------------------------------------------ draining

    def drain(self, timeout: Timeout = None) -> bool:
        """Stop claiming, let running jobs finish, unregister; return True if all of them did.

        Jobs may continue for `timeout` seconds, else for the worker's `drain_timeout`. A second call waits for the
        drain in progress, and with a shorter `timeout` shortens it.
        """
        limit = None if timeout is None else seconds(timeout, "timeout")
        drain, loop, thread = self._drain, self._loop, self._thread
        try:
            clean = drain is None or drain.wait(limit)
        except KeyboardInterrupt:  # raised once the drain that it forced has ended
            self._end_thread(loop, thread)
            raise
        self._end_thread(loop, thread)
        return clean

    async def adrain(self, timeout: Timeout = None) -> bool:
        """Async twin of `drain`. Cancelling it stops and releases running jobs, and then ends."""
        limit = None if timeout is None else seconds(timeout, "timeout")
        drain = self._drain
        return drain is None or await drain.run(limit)

    def _end_thread(self, loop: asyncio.AbstractEventLoop | None, thread: threading.Thread | None) -> None:
        if loop is None or thread is None:
            return
        if not loop.is_closed():
            loop.call_soon_threadsafe(loop.stop)
        thread.join()
        if self._thread is thread:
            self._loop = self._thread = None

    # ------------------------------------------------------------------ run: the main thread, with signals

    def run(
        self,
        when_ready: Callable[[Node], None] = lambda node: None,
        *,
        burst: bool = False,
        store_wait: StoreWait | None = None,
    ) -> int:
        """Run until SIGTERM or SIGINT, then drain; a second signal forces. Return the exit code.

        With `burst` it drains by itself once nothing is due any more. A store that is not reachable at the start is
        waited for.
        """
        if threading.current_thread() is not threading.main_thread():
            raise ConfigurationError(
                "run_worker() handles signals and so needs the main thread; use `with app.worker():` here"
            )
        self._entered(self)
        self._runs_alone = True
        loop = loops.new_loop()
        try:
            asyncio.set_event_loop(loop)
            life = loop.create_task(self._run(when_ready, store_wait or StoreWait(), burst=burst))
            with garbage.seldom(), thread_switches.frequent():
                return loops.outlive_exits(lambda: loop.run_until_complete(life), life.done)
        finally:
            loops.close(loop)
            asyncio.set_event_loop(None)
            self._entered(None)

    async def _run(self, when_ready: Callable[[Node], None], store_wait: StoreWait, *, burst: bool) -> int:
        loop = asyncio.get_running_loop()
        asked = asyncio.Event()
        forced = asyncio.Event()

        def on_signal(name: str) -> None:
            if asked.is_set():
                logger.warning("%s again: stopping and releasing running jobs now", name)
                forced.set()
            else:
                logger.info("%s: draining; running jobs may finish, a second signal forces", name)
                asked.set()

        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, on_signal, number.name)
        if not await store_wait.start(self._start, asked):
            exits.end_with(CLEAN)
            return CLEAN
        node = self.node
        assert node is not None
        when_ready(node)
        emptied = loop.create_task(_drain_when_empty(node)) if burst else None
        await loops.first(asked, node.asked_to_drain)
        if emptied is not None:
            emptied.cancel()
        asked.set()
        return await self._drain_or_force(node, forced)

    async def _drain_or_force(self, node: Node, forced: asyncio.Event) -> int:
        assert self._drain is not None
        draining = self._drain.begin(None)
        force = asyncio.ensure_future(forced.wait())
        await asyncio.wait({draining, force}, return_when=asyncio.FIRST_COMPLETED)
        if not draining.done():
            node.slots.force()
        force.cancel()
        if await draining:
            return CLEAN
        code = FORCED if self.failure is None else FAILED
        exits.end_with(code)
        return code


async def _drain_when_empty(node: Node) -> None:
    await node.emptied()
    logger.info("nothing is due any more; node %s shuts down", node.id)
    node.asked_to_drain.set()


def _checked_concurrency(concurrency: object) -> int:
    if isinstance(concurrency, int) and not isinstance(concurrency, bool) and concurrency >= 1:
        return concurrency
    raise ConfigurationError(f"concurrency must be a whole number of at least 1, got {concurrency!r}")


def _checked_queues(queues: Iterable[str] | None) -> list[str] | None:
    if queues is None:
        return None
    if isinstance(queues, str):
        raise ConfigurationError(f"queues must be a list of names, got the text {queues!r}; write [{queues!r}]")
    names = [check_queue(name) for name in queues]
    if not names:
        raise ConfigurationError("queues must name at least one queue, got none; leave it out to serve all of them")
    return names
