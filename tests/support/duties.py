"""Duties on a store of their own, by a clock that the test moves."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from windlass.domain.clock import VirtualClock
from windlass.runtime.duty import Duty
from windlass.stores.database import Database
from windlass.stores.migrate import migrate
from windlass.stores.open import open_database


@asynccontextmanager
async def store_of(url: str, clock: VirtualClock, duties: Iterable[Duty]) -> AsyncIterator[Database]:
    """A migrated store; the duties are stopped before it is closed."""
    database = open_database(url, clock)
    await asyncio.to_thread(migrate, database)
    yield database
    for duty in duties:
        await duty.stop()
    await database.aclose_loop()
    database.close()


async def all_look(duties: Iterable[Duty]) -> None:
    """Return when every duty has looked whose turn it is, from now on."""
    for duty in duties:
        duty.signals.ticked.disarm()
        duty.signals.ticked.arm()
        duty.wake()
        await duty.signals.ticked.wait()
