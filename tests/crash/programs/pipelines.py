"""Pipelines of crash tests. Their steps write down each call: `price order.7,TRANSITION_KEY,EFFECT_KEY`.

What a step does to its process is part of the input, so that all processes declare the same pipelines.
"""

import asyncio
import os
import signal
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tests.crash.programs.application import make_app
from tests.crash.programs.bodies import PAUSE, write_down
from windlass import Delivery, JobContext, Windlass
from windlass.domain.clock import SystemClock, micros
from windlass.pipelines.pipeline import AppPipeline
from windlass.pipelines.step_context import StepContext

RETRY_WAIT = 3.0
BUFFER = 10
SUBSCRIBERS = ("left", "right")


@dataclass
class Order:
    """The input of all pipelines here."""

    name: str
    lines: int = 0
    kills: int = -1
    """The line, or in `steps` the step, that kills its process."""
    fails: int = -1
    """The line, or the step, whose first attempt fails."""
    broken: int = -1
    """The line, or the step, that fails for good."""
    holds: int = -1
    """The line, or the step, that waits for the gate without giving the loop back."""
    seconds: float = 0.0
    """How long a line takes."""


@dataclass
class Line:
    """An item."""

    order: Order
    number: int


def running_step() -> StepContext:
    """The context of the step that runs."""
    context = JobContext.current()
    assert isinstance(context, StepContext)
    return context


def note(step: str, name: str) -> JobContext:
    """Write a call down."""
    context = running_step()
    write_down(step, f"{name},{context.transition_key},{context.effect_key}")
    write_down(f"{step}-at", f"{name},{micros(SystemClock().now())}")
    return context


def behave(order: Order, number: int, context: JobContext) -> None:
    """Do what the order says a step, or a line, does."""
    if order.kills == number:
        os.kill(os.getpid(), signal.SIGKILL)
    if order.fails == number and context.attempt == 1:
        raise ConnectionError("the gateway does not answer")
    if order.broken == number:
        raise ValueError("no such article")
    if order.holds == number:
        write_down("began", f"{order.name}.{number}")
        while not Path(os.environ["TEST_GATE"]).exists():
            time.sleep(PAUSE)  # noqa: TID251 - another process opens it; the loop is held on purpose


def declare_steps(app: Windlass, queue: str) -> AppPipeline:
    """Three steps of one value."""
    steps = app.pipeline("steps", version="1", queue=queue, retry_limit=1, retry_wait=RETRY_WAIT, jitter=False)

    @steps.step
    async def first(order: Order) -> Order:
        behave(order, 0, note("first", order.name))
        return order

    @steps.step
    async def second(order: Order) -> Order:
        behave(order, 1, note("second", order.name))
        return order

    @steps.step
    async def third(order: Order) -> str:
        behave(order, 2, note("third", order.name))
        return order.name

    return steps


def declare_orders(app: Windlass, queue: str, name: str = "orders", **options: object) -> AppPipeline:
    """An expansion, a step for each line, and their sum."""
    chosen = {"retry_limit": 1, "retry_wait": RETRY_WAIT, "jitter": False, "buffer": BUFFER, "concurrency": 4}
    orders = app.pipeline(name, version="1", queue=queue, **{**chosen, **options})  # type: ignore[arg-type]

    @orders.expand
    def lines(order: Order) -> Iterator[Line]:
        note("lines", order.name)
        for number in range(order.lines):
            yield Line(order, number)

    @orders.step
    async def price(line: Line) -> int:
        context = note("price", f"{line.order.name}.{line.number}")
        behave(line.order, line.number, context)
        await asyncio.sleep(line.order.seconds)
        return line.number

    @orders.reduce
    def total(prices: Iterable[int]) -> int:
        write_down("total", running_step().execution_id)
        return sum(prices)

    return orders


def declare_approval(app: Windlass, queue: str) -> AppPipeline:
    """A single value that waits for an answer from outside."""
    approval = app.pipeline("approval", version="1", queue=queue)

    @approval.step
    async def begin(order: Order) -> Order:
        return order

    @approval.await_external(timeout=3600, answer=int)
    async def ask(order: Order) -> str:
        note("ask", order.name)
        return order.name

    @approval.step
    async def end(answer: int) -> int:
        note("end", str(answer))
        return answer

    return approval


def declare_asking(app: Windlass, queue: str) -> AppPipeline:
    """Lines that each wait for an answer from outside."""
    asking = app.pipeline("asking", version="1", queue=queue, buffer=BUFFER, concurrency=4)

    @asking.expand
    def lines(order: Order) -> Iterator[Line]:
        for number in range(order.lines):
            yield Line(order, number)

    @asking.await_external(timeout=3600, answer=int)
    async def ask(line: Line) -> int:
        note("ask", f"{line.order.name}.{line.number}")
        return line.number

    @asking.step
    async def double(answer: int) -> int:
        return answer * 2

    @asking.reduce
    def total(numbers: Iterable[int]) -> int:
        return sum(numbers)

    return asking


def declare_publisher(app: Windlass, queue: str) -> list[AppPipeline]:
    """An expansion whose items are handed over to two other pipelines."""
    publisher = app.pipeline("publisher", version="1", queue=queue, buffer=1_000)

    @publisher.expand
    def named(order: Order) -> Iterator[str]:
        note("named", order.name)
        for number in range(order.lines):
            yield f"{order.name}.{number}"

    publisher.publish("names", key=lambda name: name)
    return [publisher, *(declare_subscriber(app, queue, name) for name in SUBSCRIBERS)]


def declare_subscriber(app: Windlass, queue: str, name: str) -> AppPipeline:
    """One step for each item that is handed over."""
    subscriber = app.pipeline(name, version="1", queue=queue, subscribe="names")

    @subscriber.step
    async def take(given: str) -> str:
        note(name, given)
        return given

    return subscriber


def declare_sales(app: Windlass, queue: str) -> list[AppPipeline]:
    """Orders whose sums are handed over to another pipeline, and to a place outside."""
    sales = declare_orders(app, queue, "sales")
    sales.publish("totals", to={"ledger": enter})
    books = app.pipeline("books", version="1", queue=queue, subscribe="totals")

    @books.step
    async def book(total: int) -> int:
        note("book", str(running_step().execution_id))
        return total

    return [sales, books]


def enter(delivery: Delivery) -> None:
    """Write down what comes to the place outside; it does not know which keys it had."""
    write_down("ledger", f"{delivery.idempotency_key},{delivery.payload}")


class Pipelines(NamedTuple):
    """An application and its pipelines, by name."""

    app: Windlass
    named: dict[str, AppPipeline]


def pipelines_app(url: str, queue: str = "default") -> Pipelines:
    """An application with all of these pipelines, whose jobs are in one queue."""
    app = make_app(url)
    found = [
        declare_steps(app, queue),
        declare_orders(app, queue),
        declare_orders(app, queue, "ordered", ordered=True),
        declare_orders(app, queue, "recovering", recover_on_failure=True, buffer=128, concurrency=128),
        declare_approval(app, queue),
        declare_asking(app, queue),
        declare_orders(app, queue, "wide", buffer=128, concurrency=128),
        *declare_publisher(app, queue),
        *declare_sales(app, queue),
    ]
    return Pipelines(app, {one.name: one for one in found})
