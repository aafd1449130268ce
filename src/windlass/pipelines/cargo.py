"""What claims of executions hand to the follow-ups of the transaction that ends their attempt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from windlass.domain.execution import Failing, LogRow, NewReject
from windlass.stores.plans.executions import Checkpoint
from windlass.stores.plans.items import Release


class Boundary(NamedTuple):
    """The execution goes on with a later claim; what this one has finished is written along."""

    write: Checkpoint | None = None
    """None: nothing but the wait."""


class LastRejects(NamedTuple):
    """What the last step of an execution has rejected."""

    rejects: Sequence[NewReject]
    deliver: Callable[[Sequence[NewReject]], None]
    """Passes those that are new to the sink of the pipeline, after the commit."""


class Finished(NamedTuple):
    """The execution has succeeded."""

    log: LogRow
    rejects: LastRejects | None = None


class FailedStep(NamedTuple):
    """The execution fails for good."""

    log: LogRow
    transition_key: str
    rejects: LastRejects | None = None
    """What it is over the limit of rejects with."""


class PartEnded(NamedTuple):
    """All items of a part have ended, or its execution has: the next part gets a job."""

    release: Release


class PartFailed(NamedTuple):
    """An item of a part has failed for good, which ends its execution."""

    execution_id: str
    failing: Failing


class PartParked(NamedTuple):
    """The execution of a part is paused; the part waits until it is resumed."""

    execution_id: str
