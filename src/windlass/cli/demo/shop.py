"""The jobs of the demo. Worker processes of the demo load this module as an application of its own."""

from __future__ import annotations

import asyncio
import os
import threading
from typing import Any, Final, NamedTuple

from windlass import Backoff, BatchProgress, JobContext, JobResult, NodeSettings, Settings, Windlass

URL_VARIABLE: Final = "WINDLASS_DEMO_URL"
LOCATION: Final = "windlass.cli.demo.shop:app"

FAILURES: Final = 3
FIRST_DELAY: Final = 0.25
PACKING: Final = 0.8
"""Seconds it takes to pack a parcel."""
WRAPPING: Final = 0.5
"""Seconds it takes to wrap an article."""
PAGES: Final = 40
PRINTING: Final = 0.03
"""Seconds a page takes."""
PRICING: Final = 0.08
"""Seconds it takes to find a new price."""
NODE: Final = NodeSettings(heartbeat_interval=0.5, missed_heartbeats=3, recovery_interval=0.5)
"""A tenth of the default heartbeat, so that a lost worker is noticed while one watches."""


PRICES: Final[dict[str, int]] = {}
"""The price list: empty until it is loaded."""
CARRIER: Final = threading.Event()
"""Set while the carrier answers."""
CIRCUIT: Final = "carrier"


class BankTimeoutError(Exception):
    """The bank does not answer."""


def collect(order: int) -> str:
    """Collect money from a bank that answers only after several requests."""
    attempt = JobContext.current().attempt
    if attempt <= FAILURES:
        raise BankTimeoutError(f"no answer for order {order}")
    return f"paid at attempt {attempt}"


async def deliver(message: str) -> str:
    """Deliver a message."""
    return message


async def pack(parcel: int) -> str:
    """Pack a parcel, which takes a moment."""
    await asyncio.sleep(PACKING)
    return f"parcel {parcel}"


async def print_run(pages: int) -> int:
    """Print pages, and report progress."""
    context = JobContext.current()
    for page in range(1, pages + 1):
        await asyncio.sleep(PRINTING)
        context.progress(page, pages, f"page {page}")
    return pages


def thank(result: JobResult) -> str:
    """Thank the customer of a print run."""
    return f"{result.value} pages are ready"


async def check(order: int) -> int:
    """Check an order."""
    await asyncio.sleep(WRAPPING / 2)
    return order


async def engrave(article: str) -> str:
    """Engrave an article."""
    await asyncio.sleep(WRAPPING)
    return f"engraved {article}"


async def wrap(article: str) -> str:
    """Wrap an article."""
    await asyncio.sleep(WRAPPING)
    return article


async def label(articles: list[str]) -> str:
    """Write the label of a parcel with all articles."""
    await asyncio.sleep(WRAPPING / 2)
    return ", ".join(articles)


async def dispatch(parcel: str) -> str:
    """Send a parcel."""
    return f"{parcel}: on the way"


async def reprice(article: int) -> int:
    """Find a new price for an article."""
    await asyncio.sleep(PRICING)
    return article


def open_sale(progress: BatchProgress) -> str:
    """Open a sale that was approved."""
    signal = JobContext.current().signal
    by = "no one" if signal is None else signal.payload
    return f"the sale is open: {progress.completed} new prices, approved by {by}"


def invoice(article: str) -> str:
    """Write an invoice, which takes a price."""
    return f"{article}: {PRICES[article]} €"


def ship(parcel: int) -> str:
    """Hand a parcel to a carrier that does not always answer."""
    if not CARRIER.is_set():
        raise ConnectionError("the carrier does not answer")
    return f"parcel {parcel} is on its way"


class Shop(NamedTuple):
    """An application and its jobs."""

    app: Windlass
    collect: Any
    deliver: Any
    pack: Any
    print_run: Any
    thank: Any
    check: Any
    engrave: Any
    wrap: Any
    label: Any
    dispatch: Any
    reprice: Any
    open_sale: Any
    invoice: Any
    ship: Any


def open_shop(url: str) -> Shop:
    """The shop on a store."""
    app = Windlass(url, settings=Settings(node=NODE))
    retried = app.job(max_retries=FAILURES, backoff=Backoff.exponential(FIRST_DELAY))
    return Shop(
        app=app,
        collect=retried(collect),
        deliver=app.job(deliver),
        pack=app.job(pack),
        print_run=app.job(print_run),
        thank=app.job(thank),
        check=app.job(name="shop:check")(check),
        engrave=app.job(name="shop:engrave")(engrave),
        wrap=app.job(name="shop:wrap")(wrap),
        label=app.job(name="shop:label")(label),
        dispatch=app.job(name="shop:dispatch")(dispatch),
        reprice=app.job(name="shop:reprice")(reprice),
        open_sale=app.job(name="shop:open_sale")(open_sale),
        invoice=app.job(invoice),
        ship=app.job(max_retries=FAILURES, circuit=CIRCUIT)(ship),
    )


app = open_shop(os.environ.get(URL_VARIABLE, "sqlite://")).app
