"""Keeps several worker processes running: restarts those that exit, forwards signals, exits when they have exited.

A worker that was asked to drain (`windlass node drain`, a signal sent to it alone) is not replaced. Its exit code does
not show that: a job's body may end the process with any code. So a worker that has drained sends a last message
before it exits.

Each child is a `python -m windlass worker` in its own process group, so that Ctrl-C reaches only the supervisor and is
forwarded once. A child holds one end of a socket whose other end only the supervisor holds: when the supervisor dies,
however it dies, the socket closes, and the child drains. Last messages go the other way.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
import threading
from asyncio.subprocess import Process
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from windlass.domain.clock import monotonic
from windlass.runtime.processes.lifetime import how_it_ended
from windlass.worker import CLEAN, FORCED

logger = logging.getLogger("windlass.supervisor")

FIRST_PAUSE: Final = 0.5
LAST_PAUSE: Final = 30.0
STEADY_AFTER: Final = 60.0
"""Seconds after which a child counts as stable: its next restart has no backoff."""
ECHO: Final = 0.05
"""A signal this soon after another is a duplicate: `timeout` and shells signal a process and its group."""
EXIT_GRACE: Final = 10.0
"""Seconds that children may take to exit after the second signal; then they are killed."""
DRAINED: Final = b"drained"
"""What a worker sends before it exits after a request to drain."""


class Lifeline:
    """A worker's end of the socket to its supervisor."""

    def __init__(self, number: int) -> None:
        self._number = number
        os.set_inheritable(number, False)  # programs that jobs start must not keep it open
        threading.Thread(target=self._watch, name="windlass-lifeline", daemon=True).start()

    def _watch(self) -> None:
        """Drain when the supervisor has died."""
        os.read(self._number, 1)
        os.kill(os.getpid(), signal.SIGTERM)

    def report_drained(self) -> None:
        """Notify the supervisor that this process exits on request."""
        with suppress(OSError):  # the supervisor has died
            os.write(self._number, DRAINED)


class Ended(NamedTuple):
    """How a child ended."""

    code: int
    asked: bool
    """Whether it has reported a request to drain."""


class Supervisor:
    """Runs `count` children of one command line until it is stopped."""

    def __init__(self, arguments: Sequence[str], count: int) -> None:
        self._arguments = arguments
        self._count = count
        self._children: dict[int, Process] = {}
        self._last_signal_at = float("-inf")
        self._asked = asyncio.Event()
        self._forced = asyncio.Event()

    def run(self) -> int:
        """Block until all children have drained; return 0 if all did so cleanly, else 3."""
        return asyncio.run(self._run())

    async def _run(self) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_signal, number)
        killer = loop.create_task(self._kill_the_stubborn())
        codes = await asyncio.gather(*(self._keep(slot) for slot in range(1, self._count + 1)))
        killer.cancel()
        return CLEAN if all(code == CLEAN for code in codes) else FORCED

    def _on_signal(self, number: signal.Signals) -> None:
        now, before = monotonic(), self._last_signal_at
        self._last_signal_at = now
        if now - before < ECHO:
            return
        again = self._asked.is_set()
        logger.info("%s%s: passed on to %d workers", number.name, " again" if again else "", len(self._children))
        (self._forced if again else self._asked).set()
        for child in self._children.values():
            with suppress(ProcessLookupError):
                child.terminate()

    async def _keep(self, slot: int) -> int:
        """Keep one child running; return the exit code of the last one."""
        pause = FIRST_PAUSE
        while True:
            started = monotonic()
            code, asked = await self._one_life(slot)
            if self._asked.is_set():
                return self._end_code(code)
            if asked:
                logger.info("worker %d was asked to drain and %s; it is not restarted", slot, how_it_ended(code))
                return code
            lived = monotonic() - started
            pause = FIRST_PAUSE if lived > STEADY_AFTER else pause
            logger.warning(
                "worker %d %s unexpectedly after %.1f s; restarting it in %.1f s",
                *(slot, how_it_ended(code), lived, pause),
            )
            with suppress(TimeoutError):
                await asyncio.wait_for(self._asked.wait(), pause)
                return CLEAN
            pause = min(pause * 2, LAST_PAUSE)

    def _end_code(self, code: int) -> int:
        """Return the code of a child that was stopped; one that was still starting counts as 0."""
        return CLEAN if code in (CLEAN, -signal.SIGTERM) else FORCED

    async def _one_life(self, slot: int) -> Ended:
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                child = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-m", "windlass", *self._arguments, "--lifeline", str(theirs.fileno())),
                    stdin=asyncio.subprocess.DEVNULL,
                    pass_fds=(theirs.fileno(),),
                    process_group=0,
                )
            self._children[slot] = child
            if self._asked.is_set():  # the signal came while it was being started
                child.terminate()
            return Ended(await child.wait(), _has_drained(ours))
        finally:
            self._children.pop(slot, None)
            ours.close()

    async def _kill_the_stubborn(self) -> None:
        await self._forced.wait()
        await asyncio.sleep(EXIT_GRACE)
        for slot, child in self._children.items():
            logger.error("worker %d did not exit: killed; its jobs run again elsewhere", slot)
            child.kill()


def _has_drained(ours: socket.socket) -> bool:
    ours.setblocking(False)
    with suppress(OSError):  # nothing was sent, or the connection was reset
        return ours.recv(len(DRAINED)) == DRAINED
    return False
