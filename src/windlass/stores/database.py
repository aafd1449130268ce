"""The interface of a store: run plans, sync or async, and get notifications."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from enum import Enum
from typing import ClassVar, Concatenate, Final, ParamSpec, Protocol, TypeVar

from windlass.stores.channels import CANCELED, DONE, SCHEDULES, WORK
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan

P = ParamSpec("P")
T = TypeVar("T")

PlanFunction = Callable[Concatenate[Dialect, P], Plan[T]]

LOST: Final = "windlass_lost"
"""Channel on which `listen` calls back once, with the reason, when the store is lost: its file was deleted or replaced.

No server notifies on it.
"""
CHANNELS: Final[Iterable[str]] = (WORK, DONE, CANCELED, SCHEDULES)

MOST_RESTARTS: Final = 20
"""How often a plan is restarted after a deadlock or a lost race before the error is raised."""


class ErrorKind(Enum):
    """What a driver's error means for the caller of a plan."""

    RESTART = "deadlock or serialisation failure: run the plan again"
    GONE = "the database does not answer"
    DATA = "the database refuses these values"
    STATEMENT = "the database refuses the statement itself"


class StoreDataError(Exception):
    """The database refuses the values of a statement: the same plan would fail again."""


class Wakeups(Protocol):
    """A subscription to notifications of other processes."""

    def close(self) -> None:
        """Stop listening; safe to call twice."""


class Database(Protocol):
    """A store of one dialect. Plans run in a transaction of their own unless their only step is `alone`."""

    notifies: ClassVar[bool]
    """Whether other processes must be notified, rather than watch for changes themselves."""
    migrates_itself: ClassVar[bool]
    """Whether the schema is created at first use, or only by an explicit `migrate`."""
    dialect: Dialect
    description: str
    """For people: dialect and location, without credentials."""
    wakeup_mode: str
    """How nodes wake each other: for the banner."""
    known_queues: set[str]
    """Queues this process has seen stored."""

    def run(self, plan: PlanFunction[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a plan and block until it is committed."""
        ...

    async def arun(self, plan: PlanFunction[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a plan on the running loop."""
        ...

    def read(self, plan: PlanFunction[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a plan that writes nothing."""
        ...

    async def aread(self, plan: PlanFunction[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a plan that writes nothing, on the running loop."""
        ...

    def notify(self, channel: str, payload: str) -> None:
        """Notify other processes, best effort: a lost wakeup costs latency, never a job."""

    async def anotify(self, channel: str, payload: str) -> None:
        """Notify other processes from the running loop."""

    def listen(self, callback: Callable[[str, str], None], loop: asyncio.AbstractEventLoop | None = None) -> Wakeups:
        """Call back with channel and payload for every notification of other processes.

        On some thread; on that of `loop`, which runs as long as the subscription, where the store supports it.
        """
        ...

    def apart(self, *, outlives: bool = False) -> Database:
        """Return the same store with separate connections, where callers wait for each other's; else this one.

        With `outlives` always a separate one, for what continues after this one is closed; a store in memory is always
        this one.
        """
        ...

    def require(self) -> None:
        """Raise `StoreUnavailableError` if the store does not exist, without creating or connecting to it.

        Only a SQLite file can be missing in this sense.
        """

    def close(self) -> None:
        """Close every connection and clear caches; idempotent. Later use opens it again."""

    async def aclose_loop(self) -> None:
        """Close what belongs to the running loop."""
