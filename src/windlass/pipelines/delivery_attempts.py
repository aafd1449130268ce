"""What single tries of deliveries come to: settled rows, and their logs; and tries of all that is due, for tests."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from windlass.domain.clock import MICROSECONDS
from windlass.domain.delivery_outcomes import delay_of, failure_of
from windlass.pipelines.delivery_sources import DeliverySource
from windlass.pipelines.outlets import deliver_to
from windlass.spi import Outlet
from windlass.stores.database import Database
from windlass.stores.plans.delivery_rows import DueDelivery, Settlement

LONGEST_REASON: Final = 500
PAGE: Final = 100

Describe = Callable[[BaseException], str]
"""Returns an error's text for storage: sanitised."""


class Route(NamedTuple):
    """A destination: what waits for it, and where it goes."""

    source: DeliverySource
    outlet: Outlet


def settlement_of(
    source: DeliverySource, row: DueDelivery, error: BaseException | None, describe: Describe
) -> Settlement:
    """Return what became of a delivery, and log a failure; None: it was taken."""
    if error is None:
        return Settlement(row.id, row.attempts)
    failure = failure_of(error)
    reason = describe(failure.cause or error)[:LONGEST_REASON]
    if failure.final:
        _log(source, row, reason, "it is permanently refused, and not retried")
        return Settlement(row.id, row.attempts, reason)
    delay = delay_of(failure, row.attempts + 1, random.random())  # noqa: S311 - spreads tries, guards nothing
    _log(source, row, reason, f"it is tried again in {delay:.1f} s")
    return Settlement(row.id, row.attempts, reason, int(delay * MICROSECONDS))


def _log(source: DeliverySource, row: DueDelivery, reason: str, following: str) -> None:
    source.logger.warning(
        "delivery %s to %s (%s, key %s, attempt %d) failed: %s; %s",
        *(row.id, source.destination, row.name, row.key, row.attempts + 1, reason, following),
    )


async def deliver_due(database: Database, routes: Sequence[Route], describe: Describe) -> None:
    """Try all that is due once, one after another, without a lease: no worker runs."""
    for route in routes:
        tried: set[str] = set()
        while rows := [row for row in await database.aread(route.source.due, PAGE) if row.id not in tried]:
            tried |= {row.id for row in rows}
            settlements = [settlement_of(route.source, row, await _tried(route, row), describe) for row in rows]
            await database.arun(route.source.settle, settlements)


async def _tried(route: Route, row: DueDelivery) -> BaseException | None:
    try:
        await asyncio.to_thread(deliver_to, route.outlet, route.source.delivery(row))
    except Exception as error:  # noqa: BLE001 - users' code: what follows is decided by it
        return error
    return None
