"""Start and end of a process that runs jobs.

It is spawned, never forked, as the leader of its own process group: a Ctrl-C at the terminal does not reach it, and
everything it starts can be killed with it. It holds one end of a pipe, the lifeline, and the worker holds the other:
when the worker dies, however it dies, the kernel kills the group.
"""

from __future__ import annotations

import fcntl
import multiprocessing.spawn
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from windlass.errors import ConfigurationError

IN_JOB_PROCESS: list[bool] = []
"""Whether this process runs jobs: not empty if it does."""

_PROGRAM = "import sys; sys.path[:] = {path!r}; from windlass.job_process import main; main({channel}, {lifeline})"

# ---------------------------------------------------------------------- the worker's side


class Spawned(NamedTuple):
    """A process that was just started, and the worker's ends of its channel and lifeline."""

    process: subprocess.Popen[bytes]
    channel: socket.socket
    lifeline: int


def spawn() -> Spawned:
    """Start a process with this one's interpreter, flags and import path; it waits for its first message."""
    channel, theirs = socket.socketpair()
    end, lifeline = os.pipe()
    path = [folder or os.getcwd() for folder in sys.path]
    program = _PROGRAM.format(path=path, channel=theirs.fileno(), lifeline=end)
    try:
        process = subprocess.Popen(
            [*_interpreter(), "-c", program],
            stdin=subprocess.DEVNULL,
            pass_fds=(theirs.fileno(), end),
            process_group=0,
        )
    except BaseException:
        channel.close()
        os.close(lifeline)
        raise
    finally:
        theirs.close()
        os.close(end)
    return Spawned(process, channel, lifeline)


def _interpreter() -> list[str]:
    executable = os.fsdecode(multiprocessing.spawn.get_executable() or sys.executable)
    flags: list[str] = getattr(subprocess, "_args_from_interpreter_flags", list)()
    return [executable, *flags]


def kill(process: subprocess.Popen[bytes]) -> None:
    """Send SIGKILL to the process and to everything in its process group."""
    if process.returncode is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


def await_the_end_of(process: subprocess.Popen[bytes]) -> None:
    """Block until a process has exited, then kill its group; until it is reaped the group id is its own."""
    if hasattr(os, "waitid"):
        with suppress(ChildProcessError):
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        kill(process)


def how_it_ended(code: int) -> str:
    """Return a description of an exit code."""
    if code >= 0:
        return f"ended with code {code}"
    with suppress(ValueError):
        return f"was killed by {signal.Signals(-code).name}"
    return f"was killed by signal {-code}"


# ---------------------------------------------------------------------- the job's side


def begin(lifeline: int) -> None:
    """Set up signals and the lifeline; a process that runs jobs calls this first."""
    IN_JOB_PROCESS.append(True)
    os.set_inheritable(lifeline, False)
    die_with_the_worker(lifeline, by_kernel=hasattr(fcntl, "F_SETSIG"))
    for number in (signal.SIGINT, signal.SIGTERM):
        # A handler that does nothing, not SIG_IGN: programs that a body starts would inherit SIG_IGN.
        signal.signal(number, _nothing)
        signal.siginterrupt(number, False)


def _nothing(number: int, frame: object) -> None:
    """Ignore the signal: the worker decides when a job ends."""


def die_with_the_worker(lifeline: int, *, by_kernel: bool) -> None:
    """Have this process and everything it started killed when the other end of the lifeline is closed.

    The kernel does it where it can send a chosen signal (Linux), which also ends code that never lets another thread
    run; elsewhere a thread does it.
    """
    if not by_kernel:
        threading.Thread(target=_watch, args=(lifeline,), name="windlass-lifeline", daemon=True).start()
        return
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
    fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([lifeline], [], [], 0)[0]:  # the worker was dead already
        os.killpg(0, signal.SIGKILL)


def _watch(lifeline: int) -> None:
    os.read(lifeline, 1)
    os.killpg(0, signal.SIGKILL)


def limit_memory(limit: int | None) -> Callable[[], None]:
    """Make allocations beyond the limit fail; return a function that removes the limit.

    On Linux the limit counts private writable memory (RLIMIT_DATA), not mapped files and reserved address space.
    """
    if limit is None:
        return lambda: None
    kind = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS
    before, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))
    return lambda: resource.setrlimit(kind, (before, hard))


def refuse_worker() -> None:
    """Raise in a process that runs jobs: importing the program has reached code that starts a worker."""
    if IN_JOB_PROCESS:
        raise ConfigurationError(
            "a process that runs jobs has imported this module and reached app.worker(); "
            'put what starts a worker below `if __name__ == "__main__":`, or in a function'
        )
