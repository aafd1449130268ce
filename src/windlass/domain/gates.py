"""Gates: how many jobs a resource, a limited queue or an open circuit lets through now. Pure: rows in, numbers out.

A rate is a sliding window: no period as long as the window contains more takes than the rate allows. Takes are recorded
in twentieths of the window, and each counts until the window has passed the end of its twentieth. The limit therefore
holds at every moment, and at most a twentieth of the rate stays unused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

PARTS: Final = 20
"""Number of parts into which a rate's window is divided."""

Takes = list[tuple[int, int]]
"""Number of takes by part of time."""


class Gate(NamedTuple):
    """A gate as it is stored; permits released since are already subtracted from `in_use`."""

    name: str
    cap: int | None = None
    """Number of permits; None for any number."""
    in_use: int = 0
    rate: int | None = None
    """Number of takes allowed in `per_us`; None for any number."""
    per_us: int | None = None
    opens_at: int | None = None
    """Nothing passes before this time."""
    taken: str | None = None
    retry_us: int = 5_000_000
    """Delay before a full gate is checked again, in case the notification of a released permit was lost."""


def free_permits(gate: Gate, now: int) -> int | None:
    """Return how many jobs may pass now; None for any number."""
    if gate.opens_at is not None and gate.opens_at > now:
        return 0
    left = [] if gate.cap is None else [gate.cap - gate.in_use]
    if gate.rate is not None:
        left.append(gate.rate - sum(count for _, count in _recent(gate, now)))
    return max(min(left), 0) if left else None


def worth_a_look(gate: Gate, now: int) -> int:
    """Return when a job may pass, as far as known: now, when it opens, when its rate allows, or after `retry_us`."""
    if gate.opens_at is not None and gate.opens_at > now:
        return gate.opens_at
    if free_permits(gate, now) != 0:
        return now
    if gate.cap is not None and gate.in_use >= gate.cap:
        return now + gate.retry_us
    width, recent = _width(gate), _recent(gate, now)
    return (recent[0][0] + 1) * width + (gate.per_us or 0) if recent else now + gate.retry_us


def taken_after(gate: Gate, count: int, now: int) -> str | None:
    """Return the record of takes after `count` more have passed; None for a gate without a rate."""
    if gate.rate is None:
        return None
    recent, part = _recent(gate, now), now // _width(gate)
    if count and recent and recent[-1][0] == part:
        recent[-1] = (part, recent[-1][1] + count)
    elif count:
        recent.append((part, count))
    return json.dumps(recent, separators=(",", ":")) if recent else None


def most_at_once(most: int, ways: Iterable[Sequence[str]], free: Mapping[str, int | None]) -> int:
    """Return how many jobs may pass at a time, up to `most`, so that on each path at most one gate can run short.

    `ways` are the gates that jobs pass one after the other. A job that two gates could stop would use up permits of one
    although the other stops it; with at most one such gate per path, every gate can be counted independently.
    """
    for way in ways:
        second = sorted(left for gate in way if (left := free.get(gate)) is not None)[1:2]
        most = min([most, *second])
    return most


def narrowest(way: Iterable[str], free: Mapping[str, int | None], wanted: int) -> str | None:
    """Return the gate of a path with the fewest free permits; None if all have as many as are wanted."""
    short = [(left, gate) for gate in way if (left := free.get(gate)) is not None and left < wanted]
    return min(short)[1] if short else None


def _width(gate: Gate) -> int:
    return max((gate.per_us or 0) // PARTS, 1)


def _recent(gate: Gate, now: int) -> Takes:
    """Return the takes that still count."""
    width, per = _width(gate), gate.per_us or 0
    try:
        found = [(int(part), int(count)) for part, count in (json.loads(gate.taken) if gate.taken else ())]
    except (ValueError, TypeError):  # damaged by a manual change: restart the count, and do not affect other gates
        return []
    return [(part, count) for part, count in found if (part + 1) * width + per > now]
