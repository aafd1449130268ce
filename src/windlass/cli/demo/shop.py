"""The jobs of the demo. Worker processes of the demo load this module as an application of its own."""

from __future__ import annotations

import asyncio
import os
from typing import Any, Final, NamedTuple

from windlass import Backoff, JobContext, NodeSettings, Settings, Windlass

URL_VARIABLE: Final = "WINDLASS_DEMO_URL"
PLACE: Final = "windlass.cli.demo.shop:app"

FAILURES: Final = 3
FIRST_DELAY: Final = 0.25
PACKING: Final = 0.8
"""Seconds it takes to pack a parcel."""
NODE: Final = NodeSettings(heartbeat_interval=0.5, missed_heartbeats=3, recovery_interval=0.5)
"""A tenth of the default heartbeat, so that a lost worker is noticed while one watches."""


class BankTimeoutError(Exception):
    """The bank does not answer."""


def collect(order: int) -> str:
    """Collect money from a bank that answers only when asked often enough."""
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


class Shop(NamedTuple):
    """An application and its jobs."""

    app: Windlass
    collect: Any
    deliver: Any
    pack: Any


def open_shop(url: str) -> Shop:
    """The shop on a store."""
    app = Windlass(url, settings=Settings(node=NODE))
    retried = app.job(max_retries=FAILURES, backoff=Backoff.exponential(FIRST_DELAY))
    return Shop(app, retried(collect), app.job(deliver), app.job(pack))


app = open_shop(os.environ.get(URL_VARIABLE, "sqlite://")).app
