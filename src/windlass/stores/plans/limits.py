"""Plans for settings of queues, resources and circuits, and for what circuits learn from calls."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import msgspec

from windlass.domain.circuit import Circuit, CircuitChange, CircuitProfile, CircuitSettings, CircuitState, ServiceCall
from windlass.domain.gates import Gate
from windlass.domain.lanes import CIRCUIT, QUEUE, resource_gate
from windlass.domain.suggestions import closest
from windlass.errors import UnknownCircuitError
from windlass.stores.channels import WORK
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan, Step
from windlass.stores.plans import queues

RECHECK_US: Final = 1_000_000
"""Delay before a full queue or a circuit on trial is checked again, in case a notification was lost."""


DEFAULT: Final = CircuitProfile.DEFAULT.value


class Limit(NamedTuple):
    """How many jobs may hold a gate at a time, and how many may pass it in a period; None: any number."""

    cap: int | None
    rate: int | None
    per_us: int | None
    retry_us: int = RECHECK_US


def pause_queue(dialect: Dialect, name: str, declared: Collection[str] | None = None) -> Plan[bool]:
    """Stop claims from a queue, on every node; return False when it is paused already."""
    yield from queues.check_known(dialect, name, declared)
    alone = declared is None or name in declared  # nothing had to be looked up
    count: int = yield Step("pause_queue", {"name": name}, alone=alone)
    return count == 1


def resume_queue(dialect: Dialect, name: str, declared: Collection[str] | None = None) -> Plan[bool]:
    """Allow claims from a queue again; return False when it is not paused."""
    yield from queues.check_known(dialect, name, declared)
    count: int = yield Step("resume_queue", {"name": name})
    if count:
        yield from dialect.notify(WORK, " *")
    return count == 1


def limit_queue(dialect: Dialect, queue: str, limit: Limit, declared: Collection[str] | None = None) -> Plan[None]:
    """Limit a queue for the whole cluster, from now on. Running jobs are counted."""
    name = QUEUE + queue
    yield from queues.check_known(dialect, queue, declared)
    yield Step("insert_queue", rows=[{"name": queue}])
    yield Step("set_gate", {"name": name, **limit._asdict()})
    if limit.cap is not None or limit.rate is not None:
        entry = msgspec.json.encode(name).decode()
        running = yield Step("count_in_running", {"queue": queue, "entry": entry})
        yield Step("count_more", {"name": name, "change": running})
    yield from dialect.notify(WORK, " *")


def configure_resource(dialect: Dialect, resource: str, limit: Limit) -> Plan[None]:
    """Set a resource, and every key of it, for the whole cluster, from now on."""
    name = resource_gate(resource)
    keys = {"first": f"{name}/", "beyond": f"{name}0"}
    yield Step("set_gate", {"name": name, **limit._asdict()})
    yield Step("lock_key_gates", keys)  # in the order in which claims lock them
    yield Step("set_key_gates", {**keys, **limit._asdict()})
    yield from dialect.notify(WORK, " *")


def known_resources(dialect: Dialect, resources: Sequence[str]) -> Plan[set[str]]:
    """Return which of these were configured."""
    gates = {resource_gate(resource): resource for resource in resources}
    rows = yield Step("known_gates", {"names": dialect.names(sorted(gates))})
    return {gates[name] for (name,) in rows}


class GateRow(NamedTuple):
    """A gate, and its circuit if it is one."""

    gate: Gate
    circuit: Circuit | None
    now: int


def gates(dialect: Dialect, prefix: str, after: str = "") -> Plan[list[GateRow]]:
    """Return gates of a kind, by name, up to a page of them after `after`."""
    del dialect
    now = (yield Step("store_now", autocommit=True))[0]
    beyond = prefix[:-1] + chr(ord(prefix[-1]) + 1)
    rows = yield Step("list_gates", {"first": prefix, "beyond": beyond, "after": after}, autocommit=True)
    return [GateRow(Gate._make(row[:-1]), _circuit(row[-1]), now) for row in rows]


# ---------------------------------------------------------------------- circuits


def record_calls(
    dialect: Dialect, calls: Mapping[str, Sequence[ServiceCall]], default: CircuitSettings = DEFAULT
) -> Plan[list[CircuitChange]]:
    """Record in circuits how calls to their services ended; return those that opened or closed.

    Circuits that are not configured use `default`.
    """

    def learn(name: str, circuit: Circuit, now: int) -> Circuit:
        return circuit.with_default(default).after(calls[name], now)

    changed = yield from _change(dialect, sorted(calls), learn)
    return [one for one in changed if one.opened or one.closed]


def configure_circuit(dialect: Dialect, service: str, settings: CircuitSettings) -> Plan[None]:
    """Set when a circuit opens and closes. Its state stays: an open one keeps its wait, and trials start over."""

    def configure(_: str, circuit: Circuit, __: int) -> Circuit:
        return replace(circuit, settings=settings, trials="", configured=True)

    yield from _change(dialect, [service], configure)


def steer_circuit(
    dialect: Dialect, service: str, move: Callable[[Circuit, int], Circuit], declared: Collection[str] | None = None
) -> Plan[list[CircuitChange]]:
    """Open, close or reset a circuit by hand; return it if it opened or closed."""
    yield from _check_known(dialect, service, declared)
    changed = yield from _change(dialect, [service], lambda _, circuit, now: move(circuit, now))
    return [one for one in changed if one.opened or one.closed]


def _check_known(dialect: Dialect, service: str, declared: Collection[str] | None) -> Plan[None]:
    """Refuse a circuit that is neither in the store nor among those declared; None checks nothing."""
    if declared is None or service in declared:
        return
    if not (yield Step("known_gates", {"names": dialect.names([CIRCUIT + service])})):
        stored = [row.gate.name.removeprefix(CIRCUIT) for row in (yield from gates(dialect, CIRCUIT))]
        raise UnknownCircuitError(service, closest(service, {*declared, *stored}))


def circuit_state(dialect: Dialect, service: str) -> Plan[CircuitState]:
    """Return the state of a circuit."""
    now = (yield Step("store_now", autocommit=True))[0]
    rows = yield Step("read_circuits", {"names": dialect.names([CIRCUIT + service])}, autocommit=True)
    circuit = _circuit(rows[0][1]) if rows else None
    return (circuit or Circuit()).state(now)


def _change(
    dialect: Dialect, services: Sequence[str], change: Callable[[str, Circuit, int], Circuit]
) -> Plan[list[CircuitChange]]:
    """Change circuits under their locks. New ones are created: a circuit needs no setup."""
    names = [CIRCUIT + service for service in services]
    found, now = yield from _lock(dialect, names)
    missing = [name for name in names if name not in found]
    if missing:
        yield Step("make_circuit", rows=[{"name": name, "retry_us": RECHECK_US} for name in missing])
        found, now = yield from _lock(dialect, names)
    changes = []
    for service, name in zip(services, names, strict=True):
        before = found[name]
        after = change(service, before, now)
        if after != before:
            yield Step("write_circuit", _columns(name, after))
            changes.append(CircuitChange(service, before, after, now))
    if any(one.opened or one.closed for one in changes):
        yield from dialect.notify(WORK, " *")
    return changes


def _lock(dialect: Dialect, names: Sequence[str]) -> Plan[tuple[dict[str, Circuit], int]]:
    """Return circuits, locked, and the time of the lock."""
    rows = yield Step("lock_circuits", {"names": dialect.names(names)})
    return {name: _circuit(text) or Circuit() for name, text, _ in rows}, rows[-1][-1] if rows else 0


def _columns(name: str, circuit: Circuit) -> dict[str, Any]:
    text = msgspec.json.encode(circuit.to_json()).decode()
    return {"name": name, "cap": circuit.cap, "opens_at": circuit.opens_at, "circuit": text}


def _circuit(text: str | None) -> Circuit | None:
    return None if text is None else Circuit.from_json(msgspec.json.decode(text))
