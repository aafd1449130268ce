"""Beginning and end of a process that runs jobs.

It is spawned, never forked, as the leader of a process group of its own: a Ctrl-C at the terminal does not reach it,
and whatever it starts can be killed with it. It holds one end of a pipe, the lifeline, whose other end the worker
holds: when the worker dies, however it dies, the kernel kills the group.
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
"""Not empty in a process that runs jobs."""

_PROGRAM = "import sys; sys.path[:] = {path!r}; from windlass.job_process import main; main({channel}, {lifeline})"

# ---------------------------------------------------------------------- the worker's side


class Spawned(NamedTuple):
    """A process that was just started, and our ends of what leads to it."""

    process: subprocess.Popen[bytes]
    channel: socket.socket
    lifeline: int


def spawn() -> Spawned:
    """Start a process with the interpreter, flags and import path of this one; it then waits for its first message."""
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
    """SIGKILL, to the process and to all that it started and that stayed in its group."""
    if process.returncode is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


def await_the_end_of(process: subprocess.Popen[bytes]) -> None:
    """Block until a process has ended, and end what it started: as long as it is not reaped, its group is its own."""
    if hasattr(os, "waitid"):
        with suppress(ChildProcessError):
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        kill(process)


def how_it_ended(code: int) -> str:
    """An exit code in words."""
    if code >= 0:
        return f"ended with code {code}"
    with suppress(ValueError):
        return f"was killed by {signal.Signals(-code).name}"
    return f"was killed by signal {-code}"


# ---------------------------------------------------------------------- the job's side


def begin(lifeline: int) -> None:
    """What a process that runs jobs does first."""
    IN_JOB_PROCESS.append(True)
    os.set_inheritable(lifeline, False)
    die_with_the_worker(lifeline, by_kernel=hasattr(fcntl, "F_SETSIG"))
    for number in (signal.SIGINT, signal.SIGTERM):
        # A handler that does nothing, and not SIG_IGN: that would be inherited by every program a body starts.
        signal.signal(number, _nothing)
        signal.siginterrupt(number, False)


def _nothing(number: int, frame: object) -> None:
    """The worker decides when a job ends."""


def die_with_the_worker(lifeline: int, *, by_kernel: bool) -> None:
    """Be killed, with all that this process started, as soon as the other end of the lifeline is gone.

    By the kernel where it can send a signal of choice (Linux): that also ends code that never lets a thread of ours
    run. Else by such a thread.
    """
    if not by_kernel:
        threading.Thread(target=_watch, args=(lifeline,), name="windlass-lifeline", daemon=True).start()
        return
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
    fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([lifeline], [], [], 0)[0]:  # it was gone before
        os.killpg(0, signal.SIGKILL)


def _watch(lifeline: int) -> None:
    os.read(lifeline, 1)
    os.killpg(0, signal.SIGKILL)


def limit_memory(limit: int | None) -> Callable[[], None]:
    """Let allocations beyond the limit fail; gives a function that takes the limit away again.

    What counts on Linux is what the process may write to and shares with nobody (RLIMIT_DATA): mapped files and address
    space that is only reserved do not.
    """
    if limit is None:
        return lambda: None
    kind = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS
    before, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))
    return lambda: resource.setrlimit(kind, (before, hard))


def refuse_worker() -> None:
    """Raise in a process that runs jobs: it has imported the program, and reached what only the program should do."""
    if IN_JOB_PROCESS:
        raise ConfigurationError(
            "a process that runs jobs has imported this module and reached app.worker(); "
            'put what starts a worker below `if __name__ == "__main__":`, or in a function'
        )
