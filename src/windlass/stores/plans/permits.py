"""Plans for permits: claims take them, and they are released when jobs end or nodes are lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from windlass.domain.gates import Gate, free_permits, most_at_once, narrowest, taken_after
from windlass.domain.lanes import CIRCUIT
from windlass.runtime.failpoints import reached
from windlass.stores.claim_order import QueueLane, Share
from windlass.stores.dialect import Claimed, Dialect
from windlass.stores.plan import Plan, Step


class Held(NamedTuple):
    """Gates whose rows this transaction has locked, by name, and the time of the lock."""

    gates: dict[str, Gate]
    now: int


class LockedGates:
    """The gates that this transaction has locked, and what it lets through."""

    def __init__(self, gates: Iterable[Gate], freed: dict[str, int], now: int) -> None:
        self._now = now
        self._freed = freed
        self.gates = {gate.name: gate._replace(in_use=gate.in_use - freed.get(gate.name, 0)) for gate in gates}
        self._taken = dict.fromkeys(self.gates, 0)

    def shut(self, names: Iterable[str]) -> None:
        """Let nothing through these gates, which are not locked here."""
        for name in names:
            self.gates[name], self._taken[name] = Gate(name, cap=0), 0

    def free(self) -> dict[str, int | None]:
        """Return how many may still pass each gate."""
        return {
            name: None if (number := free_permits(gate, self._now)) is None else number - self._taken[name]
            for name, gate in self.gates.items()
        }

    def have_room_for(self, number: int) -> bool:
        """Return whether so many more may pass each gate, after all that were counted here."""
        return all(permits is None or permits >= number for permits in self.free().values())

    def holds(self, names: Iterable[str]) -> str | None:
        """Return what a job that has passed these holds: a permit of each gate that counts."""
        held = [name for name in names if name in self.gates]
        return msgspec.json.encode(held).decode() if held else None

    def shares_of(self, ways: Mapping[QueueLane, Sequence[str]], most: int) -> tuple[int, dict[QueueLane, Share]]:
        """Return how many may be claimed at once, up to `most`, and the share of each queue or lane.

        Full ones are left out.
        """
        free = self.free()
        passable = {queue_lane: way for queue_lane, way in ways.items() if narrowest(way, free, 1) is None}
        wanted = most_at_once(most, passable.values(), free)
        shares = {}
        for queue_lane, way in passable.items():
            gate = narrowest(way, free, wanted)
            shares[queue_lane] = Share(gate, None if gate is None else free[gate], self.holds(way))
        return wanted, shares

    def count(self, claimed: Claimed) -> None:
        """Count claimed jobs at the time of their claim, by which a rate is measured."""
        self._now = max([self._now, *(claim.picked_at for claim in claimed.claims)])
        for holds, number in Counter(claim.holds for claim in claimed.claims).items():
            for name in held_gates(holds):
                self._taken[name] += number

    def changes(self) -> list[tuple[str, int, str | None]]:
        """Return what is to be written: name, change of the count, and the record of its rate."""
        return [
            (name, self._taken[name] - self._freed.get(name, 0), taken_after(gate, self._taken[name], self._now))
            for name, gate in self.gates.items()
            if self._taken[name] or self._freed.get(name)
        ]


def locked(dialect: Dialect, held: Held, wanted: int | None = None) -> Plan[LockedGates]:
    """Return locked gates, with released permits counted where `wanted` permits were not available without them."""
    freed: dict[str, int] = {}
    short = [name for name, gate in held.gates.items() if wanted is None or _is_short(gate, wanted)]
    if short:
        for name, count in (yield Step("take_freed", {"names": dialect.names(sorted(short))})):
            freed[name] = freed.get(name, 0) + count
    return LockedGates(held.gates.values(), freed, held.now)


def _is_short(gate: Gate, wanted: int) -> bool:
    return gate.cap is not None and gate.cap - gate.in_use < wanted


def lock(dialect: Dialect, names: Sequence[str]) -> Plan[Held]:
    """Lock gates, in the order of their names. Gates without a limit are skipped."""
    return held((yield lock_step(dialect, names)) if names else [])


def lock_step(dialect: Dialect, names: Sequence[str]) -> Step:
    """Return the statement that locks gates."""
    return Step("lock_gates", {"names": dialect.names(names)})


def held(rows: Sequence[Sequence[Any]]) -> Held:
    """Return the gates of its answer."""
    return Held({row[0]: Gate._make(row[:-1]) for row in rows}, rows[-1][-1] if rows else 0)


def held_gates(holds: str | None) -> list[str]:
    """Return the gates in the stored text of a job's permits."""
    try:
        return msgspec.json.decode(holds, type=list[str]) if holds else []
    except (msgspec.DecodeError, TypeError):  # damaged: permits that cannot be read cannot be released
        return []


# ---------------------------------------------------------------------- release


class Body(NamedTuple):
    """A body that has ended although its outcome did not count."""

    job_id: str
    fence: int


def keep(dialect: Dialect, bodies: Sequence[Body]) -> Plan[None]:
    """Move the permits of bodies that still run after their jobs' outcomes to `windlass_permit`.

    Rows are locked first.
    """
    for body in bodies:
        yield from _keep(dialect, (yield Step("lock_holder", body._asdict())))


def keep_all(dialect: Dialect, ids: Sequence[str]) -> Plan[None]:
    """Do the same for jobs that are being canceled, whose rows are locked already."""
    yield from _keep(dialect, (yield Step("holders", {"ids": dialect.ids(ids)})))


def _keep(dialect: Dialect, holders: Sequence[tuple[str, int, str, str]]) -> Plan[None]:
    """Keep all permits but a circuit's: a service that hangs must not use up the trials that would find it again."""
    for job_id, fence, node, text in holders:
        held = held_gates(text)
        kept = [name for name in held if not name.startswith(CIRCUIT)]
        row = {"job_id": job_id, "fence": fence, "node": node, "holds": msgspec.json.encode(kept).decode()}
        if kept:
            yield Step("keep_permits", row)
        yield Step("clear_permits", row)
        yield from _add_freed(dialect, [name for name in held if name.startswith(CIRCUIT)])


def release(dialect: Dialect, bodies: Sequence[Body]) -> Plan[int]:
    """Release the permits of bodies that outlived their jobs; return how many permits."""
    freed: list[str] = []
    for body in bodies:
        for (holds,) in (yield Step("delete_kept_permits", body._asdict())):
            freed += held_gates(holds)
    yield from _add_freed(dialect, freed)
    return len(freed)


def kept_by(dialect: Dialect, node: str) -> Plan[list[Body]]:
    """Return the bodies of a node that kept permits after their jobs' ends."""
    del dialect
    return [Body._make(row) for row in (yield Step("kept_permits", {"node": node}))]


def release_for_lost_nodes(dialect: Dialect) -> Plan[int]:
    """Release the permits of bodies of lost nodes."""
    freed = [name for (holds,) in (yield Step("delete_abandoned_permits")) for name in held_gates(holds)]
    reached("permits.deleted", lambda: bool(freed))
    yield from _add_freed(dialect, freed)
    return len(freed)


def _add_freed(dialect: Dialect, names: Sequence[str]) -> Plan[None]:
    if names:
        yield Step("insert_freed", {"names": dialect.names(names)})


def delete_idle_keys(dialect: Dialect, idle_us: int) -> Plan[int]:
    """Delete the gates of keys that were not used recently: they are created again when needed."""
    idle = [name for (name,) in (yield Step("idle_key_gates", {"idle_us": idle_us}))]
    if not idle:
        return 0
    gates = yield from locked(dialect, (yield from lock(dialect, idle)))
    changes = gates.changes()
    if changes:
        yield from dialect.write_gates(changes, final=False)
    count: int = yield Step("delete_idle_gates", {"names": dialect.names(list(gates.gates))})
    return count
