"""Check that the resources of jobs are configured, made when a job is enqueued."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from windlass.domain.job import NewJob
from windlass.domain.lanes import read_lane
from windlass.errors import UnknownResourceError


def resources_of(rows: Sequence[NewJob]) -> set[str]:
    """Return the resources that these jobs need permits of. Most need none."""
    return {resource for row in rows if row.lane is not None and (resource := read_lane(row.lane).resource) is not None}


def checked_resources(asked: AbstractSet[str], known: AbstractSet[str]) -> AbstractSet[str]:
    """Return the resources if all of them are known; an error names an unknown one."""
    for name in sorted(asked - known):
        raise UnknownResourceError(name)
    return asked
