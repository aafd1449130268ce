"""Followers to release or cancel after jobs have ended, and the part of them that is left to operations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from windlass.domain.dependencies import Follows, MemberChange, ways_of

CANCEL: Final = "cancel_downstream"
RELEASE: Final = "release"
CANCEL_CHILDREN: Final = "cancel_batch"
"""Kind of the operation of a canceled batch: `stores.plans.operations` carries it out."""
REVIVE: Final = "revive"
"""Keeps the checks from deciding about a flow that a retry revives in several transactions; its id is the flow's."""


class ToRelease(NamedTuple):
    """Followers to release: of this parent, those that follow it in this way."""

    parent_id: str
    follows: int


def followers_to_release(parent: str, kinds: frozenset[Follows]) -> list[ToRelease]:
    """Return the followers of a parent that follow it in these ways."""
    return [ToRelease(parent, way) for way in ways_of(kinds)]


class ToCancel(NamedTuple):
    """Followers to cancel: of this parent, those that follow it in this way."""

    parent_id: str
    follows: int
    cause: str
    """The job or group whose end it was; a retry of it revives them."""
    reason: str


def cancels_of(detail: str) -> list[ToCancel]:
    """Return the remaining work of a cascade's operation; none if it is damaged: the checks find its followers."""
    try:
        return [ToCancel(*row) for row in msgspec.json.decode(detail, type=list[tuple[str, int, str, str]])]
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return []


def releases_of(detail: str) -> list[ToRelease]:
    """Return the remaining work of a release's operation; the same."""
    try:
        return [ToRelease(*row) for row in msgspec.json.decode(detail, type=list[tuple[str, int]])]
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return []


def parents_of(kind: str, detail: str) -> set[str]:
    """Return the jobs and groups whose followers an operation releases or cancels."""
    rows: Sequence[ToRelease | ToCancel] = releases_of(detail) if kind == RELEASE else cancels_of(detail)
    return {row.parent_id for row in rows}


def member_changes(counted: Counter[tuple[str, bool]]) -> list[MemberChange]:
    """Return counted members, by group and whether they succeeded, as changes of groups."""
    groups = sorted({group for group, _ in counted})
    return [MemberChange(group, counted[group, True], counted[group, False]) for group in groups]
