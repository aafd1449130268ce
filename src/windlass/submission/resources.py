"""Resources that jobs ask for must have been configured: found out when the job is enqueued."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from windlass.domain.job import NewJob
from windlass.domain.lanes import read_lane
from windlass.errors import UnknownResourceError


def resources_of(rows: Sequence[NewJob]) -> set[str]:
    """The resources that these jobs need permits of. Most need none."""
    return {resource for row in rows if row.lane is not None and (resource := read_lane(row.lane).resource) is not None}


def checked_resources(asked: AbstractSet[str], known: AbstractSet[str]) -> AbstractSet[str]:
    """Those asked for, if all of them are known; the error names one that is not."""
    for name in sorted(asked - known):
        raise UnknownResourceError(name)
    return asked
