"""Bodies of jobs for tests. Module-level, because a local function has no name to store."""

import asyncio
import contextlib
import logging
import os
import threading
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any
from uuid import UUID

from tests.engine.apps import LONG, Gate
from windlass import DoNotRetry, JobContext, RetryAfter, Windlass, do_not_retry

GATES: dict[str, Gate] = {}
"""Gates of the running test, by name."""
seen: list[Any] = []
"""What bodies noted down, in order."""

APPS: dict[str, Windlass] = {}
"""Applications that bodies use themselves."""

log = logging.getLogger("shop")


def add(a: int, b: int) -> int:
    return a + b


async def aadd(a: int, b: int) -> int:
    return a + b


def note(value: str) -> str:
    seen.append(value)
    return value


async def anote(value: str) -> str:
    seen.append(value)
    return value


def hold(name: str) -> str:
    """Enter, and return once the gate is open."""
    gate = GATES[name]
    gate.entered.set()
    assert gate.opened.wait(LONG)
    return "let go"


async def ahold(name: str) -> str:
    """The same on the loop."""
    gate = GATES[name]
    gate.entered.set()
    while not gate.opened.is_set():  # noqa: ASYNC110 - the test opens it from another thread
        await asyncio.sleep(0.01)
    return "let go"


def length(text: str) -> int:
    return len(text)


def thread_name() -> str:
    return threading.current_thread().name


async def athread_name() -> str:
    return threading.current_thread().name


def fail(message: str) -> None:
    raise ValueError(message)


async def afail(message: str) -> None:
    raise ValueError(message)


def fail_at_first(message: str) -> int:
    """Fail the first attempt, succeed in the second; both note what they know of themselves."""
    context = JobContext.current()
    seen.append((context.attempt, context.effect_key, context.fence))
    if context.attempt == 1:
        raise ValueError(message)
    return context.attempt


def log_line(text: str) -> None:
    log.info(text)


async def alog_line(text: str) -> None:
    """Log on the loop, and from a thread that the body itself uses."""
    log.info(text)
    await asyncio.to_thread(log.info, f"{text} in a thread")


def check_until_cancelled(name: str) -> None:
    """Enter, and look again and again whether to go on."""
    context = JobContext.current()
    GATES[name].entered.set()
    pause = threading.Event()
    for _ in range(int(LONG / 0.01)):
        pause.wait(0.01)
        if context.canceled:
            seen.append("saw it")
            context.check()


async def leave_a_mark_at_the_end(path: str) -> None:
    """Sleep for longer than any test; leave a file when that ends."""
    try:
        await asyncio.sleep(600)
    finally:
        Path(path).write_text("ended")  # noqa: ASYNC240 - once, at the end


colour: ContextVar[str] = ContextVar("colour", default="none")


async def paint(name: str) -> str:
    """Give the colour found, and leave another."""
    found = colour.get()
    colour.set(name)
    return found


def describe_myself() -> dict[str, Any]:
    context = JobContext.current()
    context.log.info("described")
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


async def adescribe_myself() -> dict[str, Any]:
    return describe_myself()


def snooze_until_third_claim(delay: float) -> list[int]:
    context = JobContext.current()
    seen.append((context.attempt, context.effect_key, context.fence))
    if len(seen) < 3:
        context.snooze(delay)
    return [attempt for attempt, _, _ in seen]


async def asnooze_once(delay: float) -> int:
    seen.append("run")
    if len(seen) == 1:
        JobContext.current().snooze(delay)
    return JobContext.current().attempt


def fail_then_hold(name: str) -> None:
    """Fail the first attempt, wait at the gate in the second."""
    if JobContext.current().attempt == 1:
        raise ValueError("not yet")
    hold(name)


def process_id() -> int:
    return os.getpid()


async def sleep_long() -> None:
    await asyncio.sleep(LONG)


def loop_for_ever() -> None:
    """Pure Python, which an interrupt can end."""
    while True:
        pass


def sleep_then_return(name: str) -> str:
    """Wait in C code, which no interrupt reaches, and return late, whatever comes."""
    with contextlib.suppress(BaseException):  # the worst body there can be
        hold(name)
    seen.append("late")
    return "late"


def loop_until_asked_to_stop() -> None:
    """What a cooperative body does when it is stopped."""
    context = JobContext.current()
    seen.append("entered")
    while True:
        context.check()
        threading.Event().wait(0.005)


async def swallow_cancellation(name: str) -> str:
    """Does not end when it is canceled, but when the gate opens."""
    gate = GATES[name]
    gate.entered.set()
    while not gate.opened.is_set():
        try:
            await asyncio.sleep(0.01)
        except asyncio.CancelledError:
            seen.append("cancelled")
    seen.append("late")
    return "late"


async def clean_up_when_cancelled() -> None:
    try:
        await asyncio.sleep(LONG)
    finally:
        seen.append("cleaned up")


async def time_out_once() -> int:
    if JobContext.current().attempt == 1:
        await asyncio.sleep(LONG)
    return JobContext.current().attempt


async def return_after_cancellation() -> str:
    try:
        await asyncio.sleep(LONG)
    except asyncio.CancelledError:
        return "as if nothing had happened"
    return "never"


@do_not_retry("a declined card stays declined")
class CardDeclinedError(Exception):
    """Marked."""


class StolenCardError(CardDeclinedError):
    """Marked by inheritance."""


class RuntimeException(Exception):  # noqa: N818 - the name in the seed's example
    """What the seed's job throws."""


class BrokenError(Exception):
    """An exception that cannot even say what it is."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


def _caused_by_do_not_retry() -> None:
    try:
        raise DoNotRetry("reported stolen")
    except DoNotRetry as error:
        raise ValueError("wrapped") from error


def _wrapped_marked() -> None:
    try:
        raise CardDeclinedError
    except CardDeclinedError as error:
        raise ValueError("wrapped") from error


def _cut_off_marked() -> None:
    try:
        raise CardDeclinedError
    except CardDeclinedError:
        raise ValueError("try later") from None


RAISES: dict[str, Callable[[], object]] = {
    "marked": lambda: _raise(CardDeclinedError("no")),
    "marked base": lambda: _raise(StolenCardError("no")),
    "do not retry": lambda: _raise(DoNotRetry("no")),
    "cause": _caused_by_do_not_retry,
    "group": lambda: _raise(ExceptionGroup("several", [ValueError("a"), DoNotRetry("b")])),
    "marked in a group": lambda: _raise(ExceptionGroup("several", [ValueError("a"), StolenCardError("b")])),
    "wrapped mark": _wrapped_marked,
    "cut mark": _cut_off_marked,
    "plain": lambda: _raise(ValueError("plain")),
    "retry after": lambda: _raise(RetryAfter(40, "busy")),
    "no message": lambda: _raise(ValueError()),
    "broken text": lambda: _raise(BrokenError()),
    "jdbc": lambda: _raise(RuntimeException("Connection failed: jdbc:mysql://admin:s3cret@db.internal:3306/prod")),
    "secrets": lambda: _raise(
        RuntimeException(f"password={SECRET} token={SECRET} https://bob:{SECRET}@host/ ops@shop.example")
    ),
    "long": lambda: _raise(ValueError("x" * 10_000)),
    "system exit": lambda: _raise(SystemExit(3)),
    "keyboard interrupt": lambda: _raise(KeyboardInterrupt()),
    "stop iteration": lambda: _raise(StopIteration(1)),
    "stop async iteration": lambda: _raise(StopAsyncIteration(1)),
    "generator exit": lambda: _raise(GeneratorExit()),
    "cancelled": lambda: _raise(asyncio.CancelledError()),
    "base exception": lambda: _raise(BaseException("base")),
    "base group": lambda: _raise(BaseExceptionGroup("several", [SystemExit(1), ValueError("x")])),
}

SECRET = "hunter2secret"


def _raise(error: BaseException) -> None:
    raise error


def raise_it(what: str) -> None:
    RAISES[what]()


async def araise_it(what: str) -> None:
    RAISES[what]()


async def araise_in_a_task(what: str) -> None:
    """Raise it where asyncio itself would let it through to the loop."""
    await asyncio.gather(araise_it(what))


class State(Enum):
    OPEN = "open"
    PAID = "paid"


@dataclass(frozen=True)
class Invoice:
    number: UUID
    total: Decimal
    state: State
    at: datetime
    took: timedelta
    seal: bytes
    lines: list[tuple[str, int]]


def echo(invoice: Invoice) -> Invoice:
    return invoice


def echo_anything(value):
    """Without annotations on purpose."""
    return value


def odd_result(what: str) -> str:
    """Return what cannot be kept, or is not what was promised."""
    values: dict[str, Any] = {"too large": "x" * 65_536, "not JSON": object(), "not what was annotated": [1, 2]}
    return values[what]


def ask_another() -> int:
    """Wait for another job inside a job."""
    result: int = APPS["waiting"].bind(add, 1, 2).enqueue().result(timeout=LONG)
    return result


async def aask_another() -> int:
    return ask_another()


class Counter:
    """An object that a resolver must supply."""

    def count(self, number: int) -> int:
        return number


def enqueue_more(number: int) -> list[str]:
    """Enqueue from inside a job, which blocks wherever the body runs."""
    app = APPS["waiting"]
    return [str(app.bind(add, n, 1).enqueue().id) for n in range(number)]


async def aenqueue_more(number: int) -> list[str]:
    app = APPS["waiting"]
    first = enqueue_more(1)
    return first + [str((await app.bind(add, n, 1).aenqueue()).id) for n in range(1, number)]
