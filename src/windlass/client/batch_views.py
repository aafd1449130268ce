"""Batches as users see them."""

from __future__ import annotations

import msgspec

from windlass.domain.batch import BatchProgress
from windlass.domain.dependencies import GroupCounts

_NOTHING = BatchProgress.of(GroupCounts(0, 0, 0))


def archived_progress(result: str | None) -> BatchProgress:
    """Return the progress that the row of an archived batch keeps; a canceled one keeps none."""
    try:
        return msgspec.json.decode(result, type=BatchProgress) if result else _NOTHING
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return _NOTHING
