"""What a poll does next, and the state of the current one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from windlass.stores.claim_order import Head

Level = tuple[str, int, str | None]
"""A priority level of a queue, or of one of its lanes: queue, level, lane."""


class Look(NamedTuple):
    """Query the store for what is due."""


class ClaimDue(NamedTuple):
    """Claim up to `wanted` jobs, reading `chunk` rows of each head. Without heads the store is not queried."""

    heads: list[Head]
    wanted: int
    chunk: int
    others: Sequence[Head] = ()
    """The best heads that are due and left out of it; read only."""
    tiers: Mapping[Level, int] = MappingProxyType({})
    """The number of the tier of each head, from 1 on, where there are many heads."""


class Pause(NamedTuple):
    """Wait for this time or until woken, then poll again."""

    seconds: float


class Rest(NamedTuple):
    """Wait as long as the polling strategy says, up to this time."""

    at_most: float


class Poll(NamedTuple):
    """The state of the current poll; afterwards, how the last one ended."""

    wanted: int
    got: int | None = None
    """Number of jobs that the claim returned; None before it."""
    asked: frozenset[Level] = frozenset()
    """Number of jobs that the claim asked for."""
    cut: bool = False
    """Whether it stopped where more of a level must be read: more is due for certain."""
    looked: bool = False
    """Whether the store was queried since the poll began or, once it has claimed, since the claim."""
