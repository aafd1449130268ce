"""Plans that read how far an execution has come: its items by state, its parts, and what it tries again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan, Step

MOST_PARTS: Final = 200
"""Number of parts with jobs that are read at most."""


class ItemCount(NamedTuple):
    """How many items of a stage are in a state, before the same step."""

    stage: int
    cursor: int
    status: int
    number: int


class LivePart(NamedTuple):
    """A part that has a job."""

    job_id: str
    stage: int
    segment: int
    lo: str
    hi: str
    status: str
    due: int | None
    node: str | None


class RetriedItem(NamedTuple):
    """An item that waits for its next attempt."""

    path: str
    cursor: int
    attempt: int
    due: int | None
    error: str | None


class RetriedStep(NamedTuple):
    """The last failed attempt of an execution's own step."""

    step: int
    attempt: int
    error: str | None


class StoredProgress(NamedTuple):
    """How far an execution has come."""

    items: list[ItemCount]
    made_by: dict[int, int]
    """For each stage the step that has made it."""
    parts_left: int
    parts: list[LivePart]
    """Parts that have a job."""
    retried_item: RetriedItem | None
    """The item of the last stage that is due next."""
    retried_step: RetriedStep | None


def progress(dialect: Dialect, execution_id: str) -> Plan[StoredProgress]:
    """Return how far an execution has come."""
    del dialect
    key = {"id": execution_id}
    items = [ItemCount(*row) for row in (yield Step("item_states", key, autocommit=True))]
    made_by = dict((yield Step("steps_of_stages", key, autocommit=True)))
    left = (yield Step("parts_left", key, autocommit=True))[0]
    rows: Sequence[Sequence[object]] = ()
    if left:
        rows = yield Step("jobs_of_live_parts", key, autocommit=True, literals={"window": MOST_PARTS})
    retried = None
    if items:
        retried = yield Step("next_retried_item", {**key, "stage": items[-1].stage}, autocommit=True)
    last = yield Step("last_retry", key, autocommit=True)
    return StoredProgress(
        items,
        made_by,
        left,
        [LivePart(*row) for row in rows],  # type: ignore[arg-type]
        None if retried is None else RetriedItem(*retried),
        None if last is None else RetriedStep(*last),
    )
