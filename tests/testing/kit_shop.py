"""A program that is tested with the kit: an application of its own, whose real store cannot even be opened."""

import asyncio
import os
import threading
from collections.abc import Callable
from typing import Any

import pytest

from windlass import Backoff, JobContext, JobResult, Settings, Windlass

app = Windlass("sqlite:////nowhere/at/all/shop.db", settings=Settings())
other = Windlass("sqlite:////nowhere/at/all/other.db", settings=Settings(), allow=["tests.testing.kit_shop"])

seen: list[Any] = []
"""What bodies note down; emptied before each test."""


@app.job
def charge(invoice_id: int, currency: str = "EUR") -> str:
    seen.append(invoice_id)
    return f"charged {invoice_id} {currency}"


@app.job
async def greet(name: str) -> str:
    await asyncio.sleep(0)
    seen.append(name)
    return f"hello {name}"


@app.job(executor="thread")
async def greet_on_a_thread(name: str) -> str:
    await asyncio.sleep(0)
    seen.append((name, threading.get_ident()))
    return f"hello {name}"


@app.job(max_retries=2, backoff=Backoff.fixed(60))
def fetch(url: str) -> None:
    seen.append(url)
    raise ConnectionError(f"no answer from {url}")


@app.job(max_retries=2)
def stumble() -> str:
    attempt = JobContext.current().attempt
    seen.append(attempt)
    if attempt < 3:
        raise ValueError("not yet")
    return "there"


@app.job
def order(lines: int) -> list[str]:
    """Enqueues a job of each kind, the last one before all others."""
    handles = [charge.enqueue(line) for line in range(lines)]
    charge.using(priority=9).enqueue(99)
    return [str(handle.id) for handle in handles]


@app.job
def order_and_wait(invoice_id: int) -> str:
    return charge.enqueue(invoice_id).result()


@app.job
async def order_and_await(invoice_id: int) -> str:
    return await (await charge.aenqueue(invoice_id)).aresult()


@app.job
def again() -> None:
    again.enqueue()


@app.job
def where() -> tuple[int, bool]:
    """The thread it runs on, and whether it could start a loop of its own there."""
    asyncio.run(asyncio.sleep(0))
    return threading.get_ident(), True


@app.job
async def awhere() -> int:
    return threading.get_ident()


@app.job(timeout=0.05)
def dawdle() -> None:
    threading.Event().wait(1)


@app.job(timeout=0.05)
async def adawdle() -> None:
    await asyncio.sleep(30)


@app.job
def snooze_once() -> str:
    seen.append("asked")
    if len(seen) == 1:
        JobContext.current().snooze(30)
    return "rested"


@app.job
def cancel_yourself() -> None:
    assert app.cancel(JobContext.current().job_id)


@app.job
def report(result: JobResult) -> None:
    seen.append(result.value if result.succeeded else result.error_class)


def endings() -> dict[str, Callable[[], object]]:
    """Ways out of a body that are not the job's own."""

    def interrupt() -> object:
        raise KeyboardInterrupt

    return {"interrupt": interrupt, "fail": lambda: pytest.fail("said the body"), "skip": lambda: pytest.skip("so")}


@app.job
def leave(how: str) -> None:
    endings()[how]()


@app.job
async def aleave(how: str) -> None:
    endings()[how]()


class Payments:
    @app.job(executor="process")
    def audit(self, year: int) -> tuple[int, int]:
        return year, os.getpid()

    @app.job
    def refund(self, invoice_id: int) -> str:
        return f"refunded {invoice_id}"


def plain(number: int) -> int:
    """No job of its own: `other` allows it by its module."""
    return number + 1
