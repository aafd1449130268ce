"""Plans for gates: places that claims take, and that whoever ends, or is lost, gives back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from windlass.domain.gates import Gate, most_at_once, narrowest, places, taken_after
from windlass.domain.lanes import CIRCUIT
from windlass.runtime.failpoints import reached
from windlass.stores.claim_order import Allotment, Place
from windlass.stores.dialect import Claimed, Dialect
from windlass.stores.plan import Plan, Step


class Held(NamedTuple):
    """Gates whose rows this transaction has locked, by name, and the time when it had."""

    gates: dict[str, Gate]
    now: int


class LockedGates:
    """Gates that this transaction holds, and what it lets through."""

    def __init__(self, gates: Iterable[Gate], freed: dict[str, int], now: int) -> None:
        self._now = now
        self._freed = freed
        self.gates = {gate.name: gate._replace(in_use=gate.in_use - freed.get(gate.name, 0)) for gate in gates}
        self._taken = dict.fromkeys(self.gates, 0)

    def shut(self, names: Iterable[str]) -> None:
        """Let nobody through these, which are not held here."""
        for name in names:
            self.gates[name], self._taken[name] = Gate(name, cap=0), 0

    def free(self) -> dict[str, int | None]:
        """How many may still pass each."""
        return {
            name: None if (number := places(gate, self._now)) is None else number - self._taken[name]
            for name, gate in self.gates.items()
        }

    def leave_room_for(self, number: int) -> bool:
        """Whether so many more may pass each of them, after all that were counted here."""
        return all(places is None or places >= number for places in self.free().values())

    def holds(self, names: Iterable[str]) -> str | None:
        """What a job that has passed these holds of them: a place of each that counts."""
        held = [name for name in names if name in self.gates]
        return msgspec.json.encode(held).decode() if held else None

    def allot(self, ways: Mapping[Place, Sequence[str]], most: int) -> tuple[int, dict[Place, Allotment]]:
        """How many may be claimed at once, up to `most`, and on which terms from where: full gates leave places out."""
        free = self.free()
        passable = {place: way for place, way in ways.items() if narrowest(way, free, 1) is None}
        wanted = most_at_once(most, passable.values(), free)
        allotted = {}
        for place, way in passable.items():
            gate = narrowest(way, free, wanted)
            allotted[place] = Allotment(gate, None if gate is None else free[gate], self.holds(way))
        return wanted, allotted

    def count(self, claimed: Claimed) -> None:
        """These have passed: at the time of their claim, by which a rate is kept."""
        self._now = max([self._now, *(claim.picked_at for claim in claimed.claims)])
        for holds, number in Counter(claim.holds for claim in claimed.claims).items():
            for name in held_places(holds):
                self._taken[name] += number

    def changes(self) -> list[tuple[str, int, str | None]]:
        """What is to be written: name, change of the count, and what is remembered of its rate."""
        return [
            (name, self._taken[name] - self._freed.get(name, 0), taken_after(gate, self._taken[name], self._now))
            for name, gate in self.gates.items()
            if self._taken[name] or self._freed.get(name)
        ]


def locked(dialect: Dialect, held: Held, wanted: int | None = None) -> Plan[LockedGates]:
    """Gates that are locked, with what was given back to them: where `wanted` places could not be had without it."""
    freed: dict[str, int] = {}
    short = [name for name, gate in held.gates.items() if wanted is None or _is_short(gate, wanted)]
    if short:
        for name, count in (yield Step("take_freed", {"names": dialect.names(sorted(short))})):
            freed[name] = freed.get(name, 0) + count
    return LockedGates(held.gates.values(), freed, held.now)


def _is_short(gate: Gate, wanted: int) -> bool:
    return gate.cap is not None and gate.cap - gate.in_use < wanted


def lock(dialect: Dialect, names: Sequence[str]) -> Plan[Held]:
    """Lock gates, in the order of their names. Those that let everything through are left alone."""
    return held((yield lock_step(dialect, names)) if names else [])


def lock_step(dialect: Dialect, names: Sequence[str]) -> Step:
    """The statement that locks gates."""
    return Step("lock_gates", {"names": dialect.names(names)})


def held(rows: Sequence[Sequence[Any]]) -> Held:
    """What it answered."""
    return Held({row[0]: Gate._make(row[:-1]) for row in rows}, rows[-1][-1] if rows else 0)


def held_places(holds: str | None) -> list[str]:
    """The gates in the text of what a job holds."""
    try:
        return msgspec.json.decode(holds, type=list[str]) if holds else []
    except (msgspec.DecodeError, TypeError):  # somebody damaged it: what is not to be read cannot be given back
        return []


# ---------------------------------------------------------------------- giving back


class Body(NamedTuple):
    """A body that has ended although its outcome did not count."""

    job_id: str
    fence: int


def keep(dialect: Dialect, bodies: Sequence[Body]) -> Plan[None]:
    """Bodies that go on after their jobs' outcomes keep their places. Rows are locked before they are looked at."""
    for body in bodies:
        yield from _keep(dialect, (yield Step("lock_holder", body._asdict())))


def keep_all(dialect: Dialect, ids: Sequence[str]) -> Plan[None]:
    """The same for jobs that are being canceled, whose rows are locked already."""
    yield from _keep(dialect, (yield Step("holders", {"ids": dialect.ids(ids)})))


def _keep(dialect: Dialect, holders: Sequence[tuple[str, int, str, str]]) -> Plan[None]:
    """All but a circuit's: a service that hangs must not use up the trials that would find it back."""
    for job_id, fence, node, text in holders:
        held = held_places(text)
        kept = [name for name in held if not name.startswith(CIRCUIT)]
        row = {"job_id": job_id, "fence": fence, "node": node, "holds": msgspec.json.encode(kept).decode()}
        if kept:
            yield Step("keep_place", row)
        yield Step("pass_place_on", row)
        yield from _give_back(dialect, [name for name in held if name.startswith(CIRCUIT)])


def leave(dialect: Dialect, bodies: Sequence[Body]) -> Plan[int]:
    """Give back what bodies kept that went on after their jobs' ends; answers how many places."""
    freed: list[str] = []
    for body in bodies:
        for (holds,) in (yield Step("leave", body._asdict())):
            freed += held_places(holds)
    yield from _give_back(dialect, freed)
    return len(freed)


def kept_by(dialect: Dialect, node: str) -> Plan[list[Body]]:
    """The bodies of a node that kept places after their jobs' ends."""
    del dialect
    return [Body._make(row) for row in (yield Step("kept_places", {"node": node}))]


def leave_for_the_lost(dialect: Dialect) -> Plan[int]:
    """Give back what bodies kept whose node is gone."""
    freed = [name for (holds,) in (yield Step("abandoned_places")) for name in held_places(holds)]
    reached("places.taken_off", lambda: bool(freed))
    yield from _give_back(dialect, freed)
    return len(freed)


def _give_back(dialect: Dialect, names: Sequence[str]) -> Plan[None]:
    if names:
        yield Step("insert_freed", {"names": dialect.names(names)})


def forget_idle_keys(dialect: Dialect, idle_us: int) -> Plan[int]:
    """Forget the gates of keys that nobody has asked for lately: they are made again when they are."""
    idle = [name for (name,) in (yield Step("idle_key_gates", {"idle_us": idle_us}))]
    if not idle:
        return 0
    gates = yield from locked(dialect, (yield from lock(dialect, idle)))
    changes = gates.changes()
    if changes:
        yield from dialect.write_gates(changes, final=False)
    count: int = yield Step("delete_idle_gates", {"names": dialect.names(list(gates.gates))})
    return count
