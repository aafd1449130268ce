"""What claims of executions hand to the follow-ups of the transaction that ends their attempt."""

from __future__ import annotations

from typing import Literal, NamedTuple

from windlass.domain.execution import ItemFailure, LastRejects, LogRow
from windlass.domain.execution_items import ItemWrite
from windlass.stores.plans.executions import Checkpoint
from windlass.stores.plans.handoffs import PublishedItems
from windlass.stores.plans.items import Release

Outside = Literal["", "value", "items", "ordered"]
"""What of an execution waits for an external answer; of ordered items only the first that has not ended."""


class Boundary(NamedTuple):
    """The execution continues with a later claim; what this claim has finished is written with it."""

    write: Checkpoint | None = None
    """None: nothing but the wait."""
    paused: bool = False
    """Whether it waits because it is paused."""
    outside: Outside = ""
    """What of it waits for an answer from outside."""


class Finished(NamedTuple):
    """The execution has succeeded."""

    log: LogRow
    rejects: LastRejects | None = None
    outgoing: tuple[PublishedItems, ...] = ()
    """What is handed over with it."""


class PartEnded(NamedTuple):
    """All items of a part have ended, or its execution has: the next part gets a job."""

    release: Release


class PartFailed(NamedTuple):
    """An item of a part has failed for good, which ends its execution."""

    execution_id: str
    failing: ItemFailure
    items: tuple[ItemWrite, ...] = ()


class PartWaits(NamedTuple):
    """Items of a part wait for answers from outside."""

    ordered: bool
    """Whether the first one that has not ended blocks the others."""


class PartParked(NamedTuple):
    """The execution of a part is paused; the part waits until it is resumed."""

    execution_id: str
