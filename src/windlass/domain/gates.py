"""Gates: how many jobs a resource, a limited queue or an open circuit lets through now. Pure: rows in, numbers out.

A rate is a sliding window: no stretch of time as long as the window has more takes than the rate. Takes are remembered
in twentieths of the window, and each counts until the window has passed its twentieth's end, so the promise holds for
every moment, and at most a twentieth of the rate is left unused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

PARTS: Final = 20
"""Into how many parts a rate's window is divided."""

Takes = list[tuple[int, int]]
"""How many were let through in which part of time."""


class Gate(NamedTuple):
    """A gate as it is stored; what was freed meanwhile is taken off `in_use` already."""

    name: str
    cap: int | None = None
    """How many may hold it at a time; None for any number."""
    in_use: int = 0
    rate: int | None = None
    """How many may pass in `per_us`; None for any number."""
    per_us: int | None = None
    opens_at: int | None = None
    """Before this nobody passes."""
    taken: str | None = None
    retry_us: int = 5_000_000
    """When to look again at a gate that is full: whoever leaves it tells of it, and this is for when that got lost."""


def places(gate: Gate, now: int) -> int | None:
    """How many may pass now; None for any number."""
    if gate.opens_at is not None and gate.opens_at > now:
        return 0
    left = [] if gate.cap is None else [gate.cap - gate.in_use]
    if gate.rate is not None:
        left.append(gate.rate - sum(count for _, count in _recent(gate, now)))
    return max(min(left), 0) if left else None


def worth_a_look(gate: Gate, now: int) -> int:
    """When somebody may pass, as far as can be told: now, when it opens, when its rate allows, or after a while."""
    if gate.opens_at is not None and gate.opens_at > now:
        return gate.opens_at
    if places(gate, now) != 0:
        return now
    if gate.cap is not None and gate.in_use >= gate.cap:
        return now + gate.retry_us
    width, recent = _width(gate), _recent(gate, now)
    return (recent[0][0] + 1) * width + (gate.per_us or 0) if recent else now + gate.retry_us


def taken_after(gate: Gate, count: int, now: int) -> str | None:
    """What is remembered of the takes once `count` more have passed; None for a gate without a rate."""
    if gate.rate is None:
        return None
    recent, part = _recent(gate, now), now // _width(gate)
    if count and recent and recent[-1][0] == part:
        recent[-1] = (part, recent[-1][1] + count)
    elif count:
        recent.append((part, count))
    return json.dumps(recent, separators=(",", ":")) if recent else None


def most_at_once(most: int, ways: Iterable[Sequence[str]], free: Mapping[str, int | None]) -> int:
    """How many may pass in one go, up to `most`, so that on each way at most one gate can run short meanwhile.

    `ways` are the gates that jobs pass one after the other. A job that two gates could stop would use up the places of
    one although the other stops it; with at most one for each, every gate can be counted by itself.
    """
    for way in ways:
        second = sorted(left for gate in way if (left := free.get(gate)) is not None)[1:2]
        most = min([most, *second])
    return most


def narrowest(way: Iterable[str], free: Mapping[str, int | None], wanted: int) -> str | None:
    """The gate of a way that has the fewest places; None if all have as many as are wanted."""
    short = [(left, gate) for gate in way if (left := free.get(gate)) is not None and left < wanted]
    return min(short)[1] if short else None


def _width(gate: Gate) -> int:
    return max((gate.per_us or 0) // PARTS, 1)


def _recent(gate: Gate, now: int) -> Takes:
    """The takes that still count."""
    width, per = _width(gate), gate.per_us or 0
    try:
        found = [(int(part), int(count)) for part, count in (json.loads(gate.taken) if gate.taken else ())]
    except (ValueError, TypeError):  # damaged by hand: it counts anew, and every other gate goes on
        return []
    return [(part, count) for part, count in found if (part + 1) * width + per > now]
