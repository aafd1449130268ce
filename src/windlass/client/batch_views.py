"""Batches as users see them."""

from __future__ import annotations

from uuid import UUID

import msgspec

from windlass.domain.batch import BATCH_TARGET, BatchProgress
from windlass.domain.dependencies import GroupCounts
from windlass.domain.job import Outcome
from windlass.domain.states import JobStatus
from windlass.errors import JobNotFoundError, JobStateError

_NOTHING = BatchProgress.of(GroupCounts(0, 0, 0))


def archived_progress(result: str | None) -> BatchProgress:
    """Return the progress that the row of an archived batch keeps; nothing if it is damaged."""
    try:
        return msgspec.json.decode(result, type=BatchProgress) if result else _NOTHING
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return _NOTHING


def refuse_archived(batch_id: str, found: Outcome | None, *, must_exist: bool) -> None:
    """Raise if the failed children of a batch that is not among the working tables are archived with it."""
    if found is None or found.target != BATCH_TARGET:
        if must_exist:
            raise JobNotFoundError(UUID(batch_id))
    elif found.status is JobStatus.FAILED:
        raise JobStateError(
            UUID(batch_id),
            "the batch is archived, and so are its children, which are not started over together; retry those that "
            "you need one by one, each of which makes the batch live again (app.find(status='FAILED') lists them)",
        )
