"""Bodies of jobs that say how far they are, and log."""

import asyncio
import contextvars
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.engine import jobs
from tests.engine.apps import LONG, until
from windlass import JobContext

SECRET = "hunter2secret"
DSN = f"postgresql://shop:{SECRET}@db.internal/prod"


def climb(sign: str) -> None:
    """Say "half", wait for a file to appear, say "all"."""
    context = JobContext.current()
    context.progress(5, 10, "half")
    context.log.info("half way up")
    until(Path(sign).exists)
    context.progress(10, 10, "all")


def say(done: Any, total: Any = None, message: Any = "") -> None:
    JobContext.current().progress(done, total, message)


async def asay(done: Any, total: Any = None, message: Any = "") -> None:
    """On the loop, and last from a thread that the body itself uses."""
    JobContext.current().progress(0, total, "first")
    await asyncio.to_thread(say, done, total, message)


def count_to(limit: int) -> None:
    context = JobContext.current()
    for number in range(1, limit + 1):
        context.progress(number, limit)


async def acount_to(limit: int) -> None:
    count_to(limit)


def say_and_fail_at_first(attempts: int) -> None:
    """Each attempt but the last fails, at half."""
    context = JobContext.current()
    context.progress(50, 100, f"attempt {context.attempt}")
    context.log.warning("attempt %d", context.attempt)
    context.log.info("in the middle")
    if context.attempt < attempts:
        raise ValueError("not yet")


def overlap(old: str, new: str) -> None:
    """The first attempt ignores its timeout, and speaks up once more when the second one is long at work."""
    context = JobContext.current()
    if context.attempt == 1:
        try:
            jobs.hold(old)
        except BaseException:  # noqa: BLE001 - the worst body there can be
            jobs.seen.append("interrupted")
        context.progress(99, 100, "late")
        context.log.info("late")
        jobs.seen.append("late")
    else:
        context.progress(1, 100, "second")
        jobs.hold(new)


def log_then_snooze() -> None:
    context = JobContext.current()
    context.log.info("claim")
    if not jobs.seen:
        jobs.seen.append("snoozed")
        context.snooze(0)


def log_lines(*lines: str) -> None:
    for line in lines:
        JobContext.current().log.info(line)


def log_levels() -> None:
    log = JobContext.current().log
    for level in (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, 25, 100_000):
        log.log(level, "at %d", level)


def log_many(number: int) -> None:
    context = JobContext.current()
    for count in range(number):
        context.log.info("line %d", count)


def log_after_the_gate(name: str, number: int) -> None:
    jobs.hold(name)
    log_many(number)


def log_long(length: int) -> None:
    JobContext.current().log.info("x" * length)


def log_in_steps(name: str, count: int) -> None:
    """Log one line, wait at the gate, log the rest."""
    log = JobContext.current().log
    log.info("line 0")
    jobs.hold(name)
    for number in range(1, count):
        log.info("line %d", number)


def log_by_threads(threads: int, each: int) -> None:
    """Several threads of one body at once, from its very first line on."""
    start = threading.Barrier(threads)

    def work(name: int) -> None:
        start.wait(LONG)
        for number in range(each):
            JobContext.current().log.info("%d %d", name, number)

    made = [threading.Thread(target=contextvars.copy_context().run, args=(work, number)) for number in range(threads)]
    for thread in made:
        thread.start()
    for thread in made:
        thread.join()


async def alog_everywhere() -> None:
    log = JobContext.current().log
    log.info("on the loop")
    await asyncio.to_thread(log.info, "in a thread")
    await asyncio.create_task(_log_in_a_task())


async def _log_in_a_task() -> None:
    JobContext.current().log.info("in a task")


def log_secrets() -> None:
    log = JobContext.current().log
    log.info("connecting to %s", DSN)
    try:
        raise ValueError(f"password={SECRET}")
    except ValueError:
        log.exception("failed with token=%s", SECRET)
    JobContext.current().progress(1, 2, f"using {DSN}")


def log_oddly() -> None:
    log = JobContext.current().log
    log.info("%d apples", "no number")
    log.info("NUL \0, half a pair \ud800")
    log.info({"not": "a text"})
    logging.makeLogRecord({"name": "shop", "levelno": logging.ERROR, "msg": "from nowhere"})


def log_elsewhere() -> None:
    logging.getLogger("shop").info("by the shop")
    logging.getLogger("shop").debug("quietly")
    JobContext.current().log.info("by the job")


class Outliving:
    """Threads that go on after the body that started them."""

    def __init__(self) -> None:
        self.thread: threading.Thread | None = None
        self.begun, self.ended = threading.Event(), threading.Event()

    def work(self) -> None:
        log = logging.getLogger("shop.threads")
        log.warning("while the body runs")
        self.begun.set()
        self.ended.wait(90)
        log.warning("after the body")


outliving = Outliving()


def start_threads() -> None:
    outliving.thread = threading.Thread(target=outliving.work)
    outliving.thread.start()
    outliving.begun.wait(90)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(logging.getLogger("shop.threads").warning, "in a pool")
