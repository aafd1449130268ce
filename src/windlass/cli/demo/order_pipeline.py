"""The pipelines of the demo: an order becomes lines with prices, and an invoice that is charged and entered."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from windlass import Pipeline, RejectItem, Windlass

CATALOGUE: Final = {"kettle": 40, "lamp": 25, "rug": 90, "mirror": 60, "clock": 35}
ANSWER: Final = 0.05
"""Seconds that the catalogue takes to answer."""
BANK: Final = threading.Event()
"""Set while the bank answers."""
CALLS: Final[Counter[str]] = Counter()
"""How often each step was called."""


@dataclass
class ShopOrder:
    """What a customer wants."""

    id: int
    articles: list[str]


@dataclass
class Line:
    """One article of an order, with its price."""

    article: str
    euros: int = 0


@dataclass
class Invoice:
    """What a customer has to pay."""

    lines: int
    euros: int


def lines(order: ShopOrder) -> Iterator[Line]:
    """Expand an order into its lines."""
    CALLS["lines"] += 1
    for article in order.articles:
        yield Line(article)


async def price(line: Line) -> Line:
    """Price a line; what is not in the catalogue is rejected, and the order goes on without it."""
    CALLS["price"] += 1
    await asyncio.sleep(ANSWER)
    if line.article not in CATALOGUE:
        raise RejectItem(f"{line.article} is not in the catalogue")
    return Line(line.article, CATALOGUE[line.article])


def total(priced: Iterable[Line]) -> Invoice:
    """Add up all lines."""
    CALLS["total"] += 1
    euros = [line.euros for line in priced]
    return Invoice(len(euros), sum(euros))


def charge(invoice: Invoice) -> str:
    """Charge an invoice at a bank that does not always answer."""
    CALLS["charge"] += 1
    if not BANK.is_set():
        raise ConnectionError("the bank does not answer")
    return f"{invoice.lines} lines, {invoice.euros} € paid"


def enter(receipt: str) -> str:
    """Enter what was paid into the books."""
    return f"entered: {receipt}"


def declare(app: Windlass) -> Pipeline:
    """Declare the steps; each is stored before the next one is entered."""
    orders = app.pipeline("orders", version="1")
    orders.expand(lines)
    orders.step(concurrency=8)(price)
    orders.reduce(total)
    orders.step(retry_limit=2, retry_wait=0.1)(charge)
    orders.publish("receipts")
    app.pipeline("books", version="1", subscribe="receipts").step(enter)
    return orders
