"""The pipelines of a chaos run: orders whose sums are published, and parcels that are published one by one.

What becomes of each line is part of the input, so that the oracle knows how every execution must end.
"""

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from tests.chaos.witness import witnessed_step
from windlass import DoNotRetry, RejectItem, Windlass
from windlass.pipelines.pipeline import AppPipeline
from windlass.pipelines.step_context import StepContext

TILLS, TILLS_CAP = "tills", 4
"""A resource that lines of parcels wait behind."""
IN_FLIGHT = 20
"""Executions of `shelf` at which the items of parcels wait in the backlog."""
SUBSCRIBERS = {"orders": ("totals", "books"), "parcels": ("packed", "shelf")}
"""What a pipeline publishes, and the pipeline that subscribes to it."""
OPTIONS: dict[str, Any] = {"retry_limit": 1, "retry_wait": 0.2, "jitter": False, "buffer": 8, "concurrency": 4}

_declared: WeakKeyDictionary[Windlass, dict[str, AppPipeline]] = WeakKeyDictionary()


@dataclass
class Order:
    """The input of an execution, and what is to become of it."""

    pipeline: str
    number: int
    lines: int
    seconds: float = 0.0
    """How long a line takes."""
    rejected: list[int] = field(default_factory=list)
    """Lines that are given up."""
    flaky: list[int] = field(default_factory=list)
    """Lines whose first attempt fails."""
    hopeless: int = -1
    """A line that fails for good, and its execution with it."""
    refuses: bool = False
    """Whether that line refuses to be retried."""

    @property
    def result(self) -> Any:
        """What it must give."""
        kept = [line for line in range(self.lines) if line not in self.rejected]
        return sum(kept) if self.pipeline == "orders" else [self.name_of(line) for line in kept]

    @property
    def published(self) -> dict[str, Any]:
        """The values that it must publish, by key; {} in a key stands for the execution."""
        if self.hopeless >= 0:
            return {}
        return {"{}:0": self.result} if self.pipeline == "orders" else {name: name for name in self.result}

    @property
    def reason(self) -> str:
        """Why it must die, if it must."""
        return "non_retryable" if self.refuses else "retry_exhausted"

    def name_of(self, line: int) -> str:
        return f"{self.number}.{line}"


@dataclass
class Line:
    """An item."""

    order: Order
    number: int


def lines_of(order: Order) -> Iterator[Line]:
    with witnessed_step():
        pass  # its end is not witnessed: an abandoned generator may be closed at any time
    for number in range(order.lines):
        yield Line(order, number)


async def behave(line: Line, context: StepContext) -> None:
    """Do what the order says of a line."""
    order = line.order
    await asyncio.sleep(order.seconds)
    if line.number in order.rejected:
        raise RejectItem("not in stock")
    if line.number == order.hopeless and order.refuses:
        raise DoNotRetry("no use in trying again")
    if line.number == order.hopeless or (line.number in order.flaky and context.attempt == 1):
        raise ConnectionError("the warehouse does not answer")


async def price(line: Line) -> int:
    with witnessed_step() as context:
        await behave(line, context)
        return line.number


async def pack(line: Line) -> str:
    with witnessed_step(f"resource:{TILLS}") as context:
        await behave(line, context)
        return line.order.name_of(line.number)


def total(prices: Iterable[int]) -> int:
    with witnessed_step():
        return sum(prices)


async def book(given: int) -> int:
    with witnessed_step():
        return given


async def store(given: str) -> str:
    with witnessed_step():
        return given


def declare(app: Windlass) -> None:
    """Declare all of them."""
    orders, parcels = app.pipeline("orders", **OPTIONS), app.pipeline("parcels", **OPTIONS)
    orders.expand(lines_of)
    orders.step(price)
    orders.reduce(total)
    orders.publish("totals")
    parcels.expand(lines_of)
    behind: dict[str, Any] = {"resource": TILLS}
    parcels.step(**behind)(pack)
    parcels.publish("packed", key=lambda name: name)
    books = app.pipeline("books", subscribe="totals")
    books.step(book)
    shelf = app.pipeline("shelf", subscribe="packed", max_in_flight=IN_FLIGHT)
    shelf.step(store)
    _declared[app] = {one.name: one for one in (orders, parcels, books, shelf)}


def pipeline_of(app: Windlass, name: str) -> AppPipeline:
    """A pipeline that was declared."""
    return _declared[app][name]
