"""Jobs of crash tests. They record in a file what they do, so that a test need not rely on the store."""

import asyncio
import os
import signal
import threading
import time
from pathlib import Path

from windlass import JobContext, JobResult

PAUSE = 0.01


def write_down(word: str, value: object) -> None:
    """Append one line; appends of one write each do not mix."""
    descriptor = os.open(os.environ["TEST_RUNS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(descriptor, f"{word} {value} {os.getpid()}\n".encode())
    finally:
        os.close(descriptor)


def _is_open() -> bool:
    return Path(os.environ["TEST_GATE"]).exists()


async def note(number: int) -> int:
    """Write its number down."""
    write_down("ran", number)
    return number


def note_in_thread(number: int) -> int:
    """The same as a sync body."""
    write_down("ran", number)
    return number


async def hold(number: int) -> int:
    """Write down that it began, wait for the gate, write down that it ended."""
    write_down("began", number)
    while not _is_open():  # noqa: ASYNC110 - another process opens it
        await asyncio.sleep(PAUSE)
    write_down("ran", number)
    return number


async def hold_the_loop(number: int) -> int:
    """The same without ever giving the loop back."""
    write_down("began", number)
    while not _is_open():
        time.sleep(PAUSE)  # noqa: ASYNC251, TID251 - likewise
    write_down("ran", number)
    return number


def hold_in_thread(number: int) -> int:
    """The same on a thread."""
    write_down("began", number)
    pause = threading.Event()
    while not _is_open():
        pause.wait(PAUSE)
    write_down("ran", number)
    return number


async def work(number: int, seconds: float) -> int:
    """Take a while."""
    write_down("began", number)
    await asyncio.sleep(seconds)
    write_down("ran", number)
    return number


def work_in_thread(number: int, seconds: float) -> int:
    """Take a while on a thread."""
    write_down("began", number)
    threading.Event().wait(seconds)
    write_down("ran", number)
    return number


async def kill_its_process(number: int) -> None:
    """A poison job: every process that runs it dies."""
    write_down("began", number)
    os.kill(os.getpid(), signal.SIGKILL)


async def block_the_loop(number: int, seconds: float) -> int:
    """A frequent mistake."""
    write_down("began", number)
    time.sleep(seconds)  # noqa: ASYNC251, TID251 - the blocked loop is the point
    write_down("ran", number)
    return number


async def never_return(number: int) -> None:
    """A coroutine that ends when it is cancelled, and not before."""
    write_down("began", number)
    await asyncio.Event().wait()


async def never_end(number: int) -> None:
    """A coroutine that ignores being cancelled, for as long as the gate is shut."""
    write_down("began", number)
    while not _is_open():
        try:
            await asyncio.sleep(PAUSE)
        except asyncio.CancelledError:
            write_down("ignored", number)


def never_end_in_thread(number: int) -> None:
    """A thread that no interrupt reaches."""
    write_down("began", number)
    threading.Event().wait()


async def never_end_beside_the_loop(number: int) -> None:
    """A thread that Python itself waits for when the interpreter ends."""
    write_down("began", number)
    await asyncio.to_thread(threading.Event().wait)


def raise_odd_text(number: int) -> None:
    """An error whose message no database takes as it is: a file name that is no UTF-8, and a NUL."""
    write_down("ran", number)
    raise FileNotFoundError("caf\udce9 \0 is not here")


def leave(number: int) -> None:
    """A body that tries to end the process."""
    write_down("ran", number)
    raise SystemExit(f"job {number} leaves")


def wordless(number: int) -> None:
    """An exception without a message."""
    write_down("ran", number)
    raise ValueError


async def pay(number: int) -> int:
    """An effect outside of the store, which is given the key and the fence that make it safe to repeat."""
    context = JobContext.current()
    write_down(f"effect-{number}", context.effect_key)
    write_down(f"fence-{number}", context.fence)
    write_down("ran", number)
    return number


async def fail_until(number: int, attempt: int) -> int:
    """Fail every attempt before the one named."""
    write_down(f"attempt-{number}", JobContext.current().attempt)
    if JobContext.current().attempt < attempt:
        raise ConnectionError("the gateway does not answer")
    write_down("ran", number)
    return number


async def fail_while_shut(number: int) -> int:
    """Fail as long as the gate is shut."""
    write_down("tried", number)
    if not _is_open():
        raise ConnectionError("the gateway is shut")
    write_down("ran", number)
    return number


async def follow(result: JobResult) -> None:
    """What comes after another job."""
    write_down("followed", result.value)


async def mourn(result: JobResult) -> None:
    """What comes after a job that failed."""
    write_down("mourned", result.args[0])


def attempt_number() -> int:
    """Record which attempt this is."""
    return JobContext.current().attempt


async def flow_step(name: str) -> str:
    """A step of a random flow; it fails if TEST_BROKEN names it, and at its first attempt if TEST_FLAKY does."""
    write_down("began", name)
    await asyncio.sleep(PAUSE)
    flaky = name in os.environ.get("TEST_FLAKY", "").split(",") and JobContext.current().attempt == 1
    if flaky or name in os.environ.get("TEST_BROKEN", "").split(","):
        raise ValueError(f"{name} is broken")
    write_down("ran", name)
    return name


def says_yes(result: object) -> bool:
    return True


async def says_no(result: object) -> bool:
    return False


def raises(result: object) -> bool:
    raise LookupError("nothing to judge by")


ALL = (
    flow_step,
    note,
    note_in_thread,
    hold,
    hold_the_loop,
    hold_in_thread,
    work,
    work_in_thread,
    kill_its_process,
    block_the_loop,
    never_return,
    never_end,
    never_end_in_thread,
    never_end_beside_the_loop,
    raise_odd_text,
    leave,
    wordless,
    attempt_number,
    pay,
    fail_until,
    fail_while_shut,
    follow,
    mourn,
)


def is_over(result: JobResult) -> bool:
    """A predicate that holds after any end."""
    return result.succeeded or result.failed


def is_never(result: JobResult) -> bool:
    """A predicate that never holds."""
    return not is_over(result)


async def is_zero(number: int) -> bool:
    """A predicate on the value."""
    return number == 0
