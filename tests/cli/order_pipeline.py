"""A pipeline for the commands: `declare(app)` in the test and in the application that the commands load."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from windlass import DoNotRetry, Pipeline, RejectItem, Windlass

OFFICE = """
from tests.cli.order_pipeline import declare
from windlass import Windlass

app = Windlass()
declare(app)
"""


@dataclass
class Order:
    id: int
    lines: int


@dataclass
class Line:
    order: int
    number: int


def declare(app: Windlass, version: str = "1", *, extra: bool = False) -> Pipeline:
    """Orders are parsed, their lines priced and summed up; orders 13 and 14 and every line 7 make trouble."""
    orders = app.pipeline("orders", version, retry_wait=600, max_backoff=600, jitter=False, retry_limit=1)

    @orders.step
    def parse(raw: dict) -> Order:
        if raw["id"] == 13:
            raise ConnectionError("the catalogue is away\n\x1b[31mred")
        return Order(raw["id"], raw["lines"])

    @orders.expand(buffer=10)
    def lines(order: Order) -> Iterator[Line]:
        return (Line(order.id, number) for number in range(order.lines))

    @orders.step
    def price(line: Line) -> int:
        if line.number == 7:
            raise RejectItem("no price")
        if line.order == 14 and line.number == 3:
            raise DoNotRetry("the price is negative")
        if line.order == 15 and line.number == 3:
            raise ConnectionError("prices are away")
        return line.number

    if extra:

        @orders.step
        def tax(priced: int) -> int:
            return priced * 2

    @orders.reduce
    def total(priced: Iterable[int]) -> int:
        return sum(priced)

    return orders


def open_office(*, extra: bool = False) -> None:
    """Have the commands use the application with this pipeline, perhaps with one more step."""
    (Path.cwd() / "office.py").write_text(OFFICE.replace("declare(app)", f"declare(app, extra={extra})"))


def declare_approval(app: Windlass) -> Pipeline:
    """Orders wait for an approval from outside."""
    approval = app.pipeline("approval")

    @approval.await_external(timeout=3600, answer=bool)
    def ask(order: int) -> dict:
        return {"order": order}

    return approval
