"""Jobs that run in processes of their own. They import little: every new process imports this."""

import asyncio
import contextlib
import contextvars
import ctypes
import logging
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from windlass import DoNotRetry, JobContext, RetryAfter, do_not_retry

log = logging.getLogger("shop.process")
variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="untouched")


def pid() -> int:
    return os.getpid()


async def apid() -> int:
    await asyncio.sleep(0)
    return os.getpid()


def add(a: int, b: int = 1) -> int:
    return a + b


def describe_process() -> dict[str, Any]:
    """What a body sees of where it runs."""
    seen = variable.get()
    variable.set("touched")
    return {
        "argv": sys.argv,
        "context variable": seen,
        "group leader": os.getpgrp() == os.getpid(),
        "main": sys.modules["__main__"].__dict__.get("__file__"),
        "main thread": threading.current_thread() is threading.main_thread(),
        "parent": os.getppid(),
    }


def describe_myself() -> dict[str, Any]:
    context = JobContext.current()
    context.check()
    return {
        "job_id": str(context.job_id),
        "attempt": context.attempt,
        "fence": context.fence,
        "effect_key": context.effect_key,
        "params": dict(context.params),
        "target": context.target,
        "queue": context.queue,
        "tags": list(context.tags),
        "correlation_id": context.correlation_id,
        "node": context.node,
        "cancelled": context.canceled,
    }


def hold(file: str) -> None:
    """Write the process id, and never end: pure Python that no other thread interrupts for long."""
    Path(file).write_text(str(os.getpid()))
    while True:
        pass


def hold_the_interpreter(file: str) -> None:
    """Sleep in C code that never lets another thread of Python run."""
    Path(file).write_text(str(os.getpid()))
    ctypes.PyDLL(None).sleep(600)


def hold_with_company(file: str) -> None:
    """Start a program, write both process ids, and wait for it."""
    with subprocess.Popen(["sleep", "600"]) as company:
        Path(file).write_text(f"{os.getpid()} {company.pid}")


def wait_for(began: str, gate: str) -> str:
    """Write the process id, and return once a file is there."""
    Path(began).write_text(str(os.getpid()))
    pause = threading.Event()
    while not Path(gate).exists():
        pause.wait(0.01)
    return "let go"


def leave(code: int) -> None:
    os._exit(code)


def crash(number: int) -> None:
    os.kill(os.getpid(), number)


def crash_at_first(marker: str) -> str:
    """Die the first time, by a real segmentation fault."""
    if not Path(marker).exists():
        Path(marker).touch()
        ctypes.string_at(0)
    return "survived"


def fork_and_return() -> str:
    """Both copies return from here; only one of them may answer."""
    return "parent" if os.fork() else "child"


def fork_and_die() -> None:
    """A copy that lives on must not keep the worker waiting."""
    if os.fork() == 0:
        threading.Event().wait(600)
    os._exit(3)


def send_unexpected_message() -> None:
    """Write into whatever sockets there are, as a careless library may."""
    for descriptor in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/self/fd/{descriptor}").startswith("socket:"):
                os.write(int(descriptor), b"GET / HTTP/1.1")
    threading.Event().wait(600)


def allocate(megabytes: int) -> int:
    return len(bytearray(megabytes * 1024 * 1024))


def snooze_once() -> int:
    context = JobContext.current()
    if context.fence == 1:
        context.snooze(0)
    return context.fence


def report_progress(rounds: int) -> None:
    for number in range(rounds + 1):
        JobContext.current().progress(number, rounds, "counting")


def log_lines(text: str) -> None:
    log.debug("dropped by the worker's level")
    log.info("%s %s", text, "by a library", extra={"order": 7, "thing": Path("x")})
    JobContext.current().log.info("%s by the context", text)
    thread = threading.Thread(target=log.warning, args=(f"{text} by a thread",))
    thread.start()
    thread.join()
    try:
        raise ValueError("token=hunter2")
    except ValueError:
        log.exception("%s with a traceback", text)


def set_up_logging_and_log() -> None:
    """What a program may do while it is imported: handlers of its own."""
    logging.basicConfig(level=logging.INFO, handlers=[logging.StreamHandler(sys.stdout)], force=True)
    logging.getLogger("shop.quiet").propagate = False
    logging.getLogger("shop.quiet").error("said once")


def ignore_signals() -> list[str]:
    """Get SIGTERM, as a whole process group does."""
    for number in (signal.SIGINT, signal.SIGTERM):
        os.kill(os.getpid(), number)
    still = subprocess.run(["sh", "-c", "kill -TERM $$; echo still here"], capture_output=True, check=False)
    return ["outlived both", f"a program of its own: {still.returncode}"]


class OrderError(Exception):
    """An error whose constructor requires more than a message."""

    def __init__(self, order: int, *, why: str) -> None:
        super().__init__(order, why)
        self.order = order
        self.why = why

    def __str__(self) -> str:
        return f"order {self.order}: {self.why}"


@do_not_retry("a stolen card stays stolen")
class StolenCardError(OrderError):
    """Never worth a retry."""


def fail(how: str) -> None:  # noqa: PLR0912 - a list
    """Raise what bodies raise."""
    match how:
        case "plain":
            raise ValueError("password=hunter2")
        case "own":
            raise OrderError(7, why="no stock")
        case "marked":
            raise StolenCardError(7, why="stolen")
        case "chained":
            raise RuntimeError("outer") from OrderError(8, why="inner")
        case "do not retry":
            raise RuntimeError("outer") from DoNotRetry("the card was reported stolen")
        case "retry after":
            raise RetryAfter(0.01, "later")
        case "group":
            raise ExceptionGroup("several", [ValueError("one"), OrderError(2, why="two")])
        case "exit":
            raise SystemExit(4)
        case "interrupt":
            raise KeyboardInterrupt
        case "stop":
            raise StopIteration("odd")
        case "cancel":
            raise asyncio.CancelledError
        case "odd text":
            raise FileNotFoundError("caf\udce9 \0 is not here")
        case "unprintable":
            raise UnprintableError
        case "exits when printed":
            raise ExitingError
        case "local":
            raise type("MadeUpError", (ConnectionError,), {})("nobody else knows this class")


class UnprintableError(Exception):
    """An error that cannot say what it is."""

    def __str__(self) -> str:
        raise ZeroDivisionError


class ExitingError(Exception):
    """An error that ends the process that prints it."""

    def __str__(self) -> str:
        raise SystemExit(3)


class ClosedRow:
    """A result that cannot be read any more: like a row whose session is closed."""

    def __getattribute__(self, name: str) -> Any:
        raise SystemExit(f"{name}: the session is closed")


def return_closed_row() -> Any:
    return ClosedRow()


class Counter:
    """Methods of all kinds."""

    step = 1

    def __init__(self) -> None:
        self.made_in = os.getpid()

    def count(self, number: int) -> list[int]:
        return [number + self.step, self.made_in, os.getpid()]

    @classmethod
    def cls_step(cls) -> int:
        return cls.step

    @staticmethod
    def twice(number: int) -> int:
        return 2 * number


ALL = (
    *(
        pid,
        apid,
        add,
        describe_process,
        describe_myself,
        return_closed_row,
        hold,
        hold_the_interpreter,
        hold_with_company,
        wait_for,
        leave,
    ),
    *(crash, crash_at_first, fork_and_return, fork_and_die, allocate, snooze_once, report_progress, log_lines),
    *(set_up_logging_and_log, ignore_signals, fail),
)
