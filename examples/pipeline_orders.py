"""Orders as a pipeline: lines priced side by side, one of them rejected, and a failure that a re-drive continues.

python pipeline_orders.py    # prints (the log of the failures goes to standard error):

    order 1: Invoice(lines=3, cents=890), rejected: there is no price for unicorn
    order 2: DLQ at step 'book', retry_exhausted: the ledger is closed
    order 2: SUCCEEDED after the re-drive, prices asked in all: 6
    order 1 again: duplicate True
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from windlass import RejectItem, Windlass

shop = Windlass("sqlite:///orders.db")
orders = shop.pipeline("orders", version="1")
PRICES = {"tea": 450, "milk": 120, "bread": 320}
asked: list[str] = []
ledger = {"open": True}


@dataclass
class Order:
    id: int
    articles: list[str]


@dataclass
class Priced:
    article: str
    cents: int


@dataclass
class Invoice:
    lines: int
    cents: int


@orders.expand
def lines(order: Order) -> Iterator[str]:
    """One item for each article: it has its own attempts, and is stored after every step."""
    yield from order.articles


@orders.step(retry_limit=3, concurrency=16)
async def price(article: str) -> Priced:
    """Price one item; one that nobody sells is rejected, and its order goes on."""
    asked.append(article)
    if article not in PRICES:
        raise RejectItem(f"there is no price for {article}")
    return Priced(article, PRICES[article])


@orders.reduce
def total(priced: Iterable[Priced]) -> Invoice:
    """Read the items in order, page by page."""
    cents = [one.cents for one in priced]
    return Invoice(len(cents), sum(cents))


@orders.step(retry_limit=0)
def book(invoice: Invoice) -> Invoice:
    """Write the invoice into a ledger that may be closed."""
    if not ledger["open"]:
        raise ConnectionError("the ledger is closed")
    return invoice


def main() -> None:
    first = Order(1, ["tea", "unicorn", "milk", "bread"])
    with shop.worker():
        run = orders.submit(first, key="order 1")
        invoice = run.result(timeout=30)
        (reject,) = shop.rejects.find(execution_id=run.id)
        print(f"order 1: {invoice}, rejected: {reject.error_message.partition(': ')[2]}")

        ledger["open"] = False
        dead = orders.submit(Order(2, ["tea", "milk"]), key="order 2")
        status = dead.join(timeout=30)
        found = shop.executions.get(dead.id)
        step = orders.definition.steps[found.cursor].name
        (letter,) = shop.dead_letters.find()
        cause = letter.error_message.partition(": ")[2]
        print(f"order 2: {status} at step {step!r}, {letter.terminal_reason}: {cause}")

        ledger["open"] = True
        shop.executions.redrive(dead.id, expected_version=found.row_version, note="the ledger is open again")
        print(f"order 2: {dead.join(timeout=30)} after the re-drive, prices asked in all: {len(asked)}")
    print(f"order 1 again: duplicate {orders.submit(first, key='order 1').duplicate}")
    shop.close()


if __name__ == "__main__":
    main()
