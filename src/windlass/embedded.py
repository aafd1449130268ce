"""Where a node's loop lives.

In a thread of its own (`with`), on the caller's loop (`async with`), or in the main thread (`run`).
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Self, TypeVar

from windlass import saying
from windlass.domain.keys import check_queue
from windlass.errors import ConfigurationError
from windlass.parts import Parts
from windlass.runtime import exits, garbage
from windlass.runtime.forks import after_fork
from windlass.runtime.process_life import refuse_worker
from windlass.worker import Node

logger = saying.logger("windlass.worker")

T = TypeVar("T")

CLEAN, FORCED = 0, 3
"""Exit codes of a drained worker."""
LAST_WORDS = 1.0
"""How long tasks that are left when a loop closes may take to end."""


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
    ) -> None:
        refuse_worker()
        self._parts = parts
        self._concurrency = _checked_concurrency(concurrency)
        self._queues = _checked_queues(queues)
        self._entered = entered
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self.node: Node | None = None
        """The running node; None before and after."""
        self._runs_alone = False
        self._leaving: asyncio.Task[None] | None = None
        after_fork(self._forget)

    def _forget(self) -> None:
        """In a forked child: node, thread and loop stayed with the parent, and only there can they be left."""
        if self.node is not None:
            self._entered(None)
        self.node = self._loop = self._thread = None

    def wake(self, work: Sequence[tuple[str, int]]) -> None:
        """Tell the node of new work in this process. From any thread."""
        node = self.node
        if node is not None:
            node.wakeups.wake(list(work))

    def look_again(self) -> None:
        """Tell the node that what may be claimed has changed. From any thread."""
        node = self.node
        if node is not None:
            node.wakeups.look_again()

    def canceled(self, ids: Sequence[str]) -> None:
        """Tell the node of jobs that were canceled in this process. From any thread."""
        node = self.node
        if node is not None:
            node.wakeups.canceled(ids)

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

    def drain(self, timeout: float | None = None) -> bool:
        """Stop claiming, let running jobs finish, leave; True when all of them did. For workers entered by `with`."""
        loop, thread, node = self._loop, self._thread, self.node
        if loop is None or thread is None:
            return True
        self._loop = self._thread = None
        try:
            if node is None:  # it left by itself, because it was asked to; its loop is still there
                return True
            return asyncio.run_coroutine_threadsafe(self._leave(node, timeout), loop).result()
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()

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
        try:
            _outlive_exits(loop.run_forever)
        finally:
            _close(loop)

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
        if self.node is not None:
            await self._leave(self.node, None)

    async def _start(self) -> None:
        parts = await asyncio.to_thread(self._parts)
        node = Node(parts, self._concurrency, self._queues)
        await node.start()
        self.node = node
        self._leaving = asyncio.get_running_loop().create_task(self._leave_when_asked(node))

    async def _leave_when_asked(self, node: Node) -> None:
        """`windlass node drain`: an embedded node leaves by itself, `run` ends with it."""
        await node.asked_to_drain.wait()
        if self.node is node and not self._runs_alone:
            logger.info("node %s was asked to drain", node.id)
            await self._leave(node, None)

    def _heed_no_more(self) -> None:
        leaving, self._leaving = self._leaving, None
        if leaving is not None and leaving is not asyncio.current_task():
            leaving.cancel()

    async def _leave(self, node: Node, timeout: float | None) -> bool:
        self._heed_no_more()
        try:
            return await node.drain(timeout)
        finally:
            self.node = None
            self._entered(None)

    # ------------------------------------------------------------------ run: the main thread, with signals

    def run(self, when_ready: Callable[[Node], None] = lambda node: None) -> int:
        """Run until SIGTERM or SIGINT, then drain; a second signal forces. Answers the exit code."""
        if threading.current_thread() is not threading.main_thread():
            raise ConfigurationError(
                "run_worker() handles signals and so needs the main thread; use `with app.worker():` here"
            )
        self._entered(self)
        self._runs_alone = True
        loop = _new_loop()
        try:
            asyncio.set_event_loop(loop)
            life = loop.create_task(self._run(when_ready))
            with garbage.seldom():
                return _outlive_exits(lambda: loop.run_until_complete(life), life.done)
        finally:
            _close(loop)
            asyncio.set_event_loop(None)
            self._entered(None)

    async def _run(self, when_ready: Callable[[Node], None]) -> int:
        loop = asyncio.get_running_loop()
        asked = asyncio.Event()
        forced = asyncio.Event()

        def on_signal(name: str) -> None:
            if asked.is_set():
                logger.warning("%s again: running jobs are stopped and released now", name)
                forced.set()
            else:
                logger.info("%s: draining; running jobs may finish, a second signal forces", name)
                asked.set()

        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, on_signal, number.name)
        await self._start()
        node = self.node
        assert node is not None
        when_ready(node)
        await _first(asked, node.asked_to_drain)
        asked.set()
        return await self._drain_or_force(node, forced)

    async def _drain_or_force(self, node: Node, forced: asyncio.Event) -> int:
        self._heed_no_more()
        draining = asyncio.ensure_future(node.drain())
        force = asyncio.ensure_future(forced.wait())
        await asyncio.wait({draining, force}, return_when=asyncio.FIRST_COMPLETED)
        if not draining.done():
            node.coordinator.force()
        force.cancel()
        clean = await draining
        self.node = None
        if clean:
            return CLEAN
        exits.end_with(FORCED)
        return FORCED


async def _first(*events: asyncio.Event) -> None:
    waiting = {asyncio.ensure_future(event.wait()) for event in events}
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for waiter in waiting:
        waiter.cancel()


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


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def _outlive_exits(run: Callable[[], T], over: Callable[[], bool] = lambda: False) -> T:
    """Run a loop, and go on when asyncio lets a SystemExit or KeyboardInterrupt of some task through it.

    Such a task was started by a job's body, which meets the same error where it awaits the task: that job fails by it.
    """
    while True:
        try:
            return run()
        except (SystemExit, KeyboardInterrupt) as error:
            if over():
                raise
            logger.error("a task that a job had started raised %s; the worker goes on", type(error).__name__)


def _close(loop: asyncio.AbstractEventLoop) -> None:
    """Close a loop as `asyncio.run` does, but wait for nobody for ever: a body may ignore being cancelled."""
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        _, stubborn = loop.run_until_complete(asyncio.wait(tasks, timeout=LAST_WORDS))
        if stubborn:
            logger.error("%d tasks ignore being cancelled and are left behind", len(stubborn))
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()
