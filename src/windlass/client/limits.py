"""What an application can set for the whole cluster at run time: limits of queues, resources, circuits."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple, TypeVar

from windlass.client.client import Client
from windlass.domain.circuit import Circuit, CircuitProfile, CircuitSettings, CircuitState
from windlass.domain.clock import MICROSECONDS, from_micros
from windlass.domain.durations import seconds
from windlass.domain.keys import check_name, check_queue
from windlass.domain.lanes import CIRCUIT, RESOURCE, read_lane
from windlass.domain.limits import CircuitStatus, Per, Resource, check_cap, check_per, check_rate, per_of
from windlass.errors import InvalidOptionError
from windlass.publisher import Publisher
from windlass.runtime.verbs import Verb, adrive, drive
from windlass.stores.access import Access
from windlass.stores.plans import limits
from windlass.submission.authorization import Authorization
from windlass.submission.declared_names import declared_circuits, declared_queues

T = TypeVar("T")


class CircuitSwitch(NamedTuple):
    """A circuit to inspect and to switch by hand, from `app.circuit(name)`."""

    service: str
    access: Access
    authorization: Authorization
    publisher: Publisher
    declared: Callable[[], frozenset[str]]
    """The circuits that jobs of this application are declared with."""

    def state(self) -> CircuitState:
        """Return whether it lets jobs through."""
        return drive(self._state())

    async def astate(self) -> CircuitState:
        """Async twin of `state`."""
        return await adrive(self._state())

    def _state(self) -> Verb[CircuitState]:
        yield from self.authorization.check("circuits")
        return (yield from self.access.read(limits.circuit_state, self.service))

    def open(self, *, create: bool = False) -> None:
        """Let nothing through until it is closed or reset.

        Raises `UnknownCircuitError` if it was never used and no job is declared with it, unless `create` is True.
        """
        return drive(self._switch("open_circuit", _open, create=create))

    async def aopen(self, *, create: bool = False) -> None:
        """Async twin of `open`."""
        return await adrive(self._switch("open_circuit", _open, create=create))

    def close(self) -> None:
        """Let everything through, if it does not already; its failures so far are forgotten."""
        return drive(self._switch("close_circuit", _close))

    async def aclose(self) -> None:
        """Async twin of `close`."""
        return await adrive(self._switch("close_circuit", _close))

    def reset(self) -> None:
        """Close it and forget every call it has counted, whatever state it is in."""
        return drive(self._switch("reset_circuit", _reset))

    async def areset(self) -> None:
        """Async twin of `reset`."""
        return await adrive(self._switch("reset_circuit", _reset))

    def _switch(self, action: str, change: Callable[[Circuit, int], Circuit], *, create: bool = False) -> Verb[None]:
        yield from self.authorization.check(action)
        declared = None if create else self.declared()
        self.publisher.circuits_changed(
            (yield from self.access.run(limits.steer_circuit, self.service, change, declared))
        )


class Limits(Client):
    """The verbs of an application that set limits, which are stored and hold for all nodes at once."""

    def limit_queue(
        self,
        name: str,
        concurrency: int | None = None,
        rate: int | None = None,
        per: Per = "second",
        *,
        create: bool = False,
    ) -> None:
        """Set how many jobs of a queue may run at a time, and how many may start in a second, minute, hour or day.

        Both None remove the limit. Running jobs count, and continue. Raises `UnknownQueueError` if no job was ever in
        the queue and none is declared with it, unless `create` is True: `app.limit_queue("mail", rate=100)`
        """
        return drive(self._limit_queue(name, concurrency, rate, per, create))

    async def alimit_queue(
        self,
        name: str,
        concurrency: int | None = None,
        rate: int | None = None,
        per: Per = "second",
        *,
        create: bool = False,
    ) -> None:
        """Async twin of `limit_queue`."""
        return await adrive(self._limit_queue(name, concurrency, rate, per, create))

    def _limit_queue(self, name: str, concurrency: int | None, rate: int | None, per: Per, create: bool) -> Verb[None]:
        yield from self._authorization.check("limit_queue")
        limit = _limit(concurrency, "concurrency", rate, per)
        declared = None if create else declared_queues(self.registry)
        yield from self._access.run(limits.limit_queue, check_queue(name), limit, declared)
        self._publisher.wakeups.changed()

    def configure_resource(
        self,
        name: str,
        max_concurrent: int | None,
        rate: int | None = None,
        per: Per = "second",
        retry_delay: float | timedelta = 5,
    ) -> None:
        """Set how many jobs may use a resource at a time, and how many may start on it in a period.

        Jobs use it with `resource=`; those with a `resource_key` share the permits of that key, and each key has as
        many. `retry_delay` is the delay after which a full resource is checked again, in case a notification was lost.
        """
        return drive(self._configure_resource(name, max_concurrent, rate, per, retry_delay))

    async def aconfigure_resource(
        self,
        name: str,
        max_concurrent: int | None,
        rate: int | None = None,
        per: Per = "second",
        retry_delay: float | timedelta = 5,
    ) -> None:
        """Async twin of `configure_resource`."""
        return await adrive(self._configure_resource(name, max_concurrent, rate, per, retry_delay))

    def _configure_resource(self, name: str, *limit: Any) -> Verb[None]:
        yield from self._authorization.check("configure_resource")
        yield from self._access.run(limits.configure_resource, *_resource(name, *limit))
        self._publisher.wakeups.changed()

    def configure_circuit(self, name: str, profile: CircuitProfile = CircuitProfile.DEFAULT, **overrides: Any) -> None:
        """Set when the circuit of a service opens and closes: a profile, and what differs from it.

        `app.configure_circuit("payment-gateway", CircuitProfile.FAST, ignore=[CardDeclined])`. Overrides:
        `failure_rate, window, minimum_calls, open_wait, trials, record, ignore`.
        """
        return drive(self._configure_circuit(name, profile, overrides))

    async def aconfigure_circuit(
        self, name: str, profile: CircuitProfile = CircuitProfile.DEFAULT, **overrides: Any
    ) -> None:
        """Async twin of `configure_circuit`."""
        return await adrive(self._configure_circuit(name, profile, overrides))

    def _configure_circuit(self, name: str, profile: CircuitProfile, overrides: dict[str, Any]) -> Verb[None]:
        yield from self._authorization.check("configure_circuit")
        settings = _settings(profile, overrides)
        yield from self._access.run(limits.configure_circuit, check_name(name, "circuit"), settings)

    def circuit(self, name: str) -> CircuitSwitch:
        """Return a circuit to inspect and switch by hand: `app.circuit("payment-gateway").open()`."""
        declared = partial(declared_circuits, self.registry)
        return CircuitSwitch(check_name(name, "circuit"), self._access, self._authorization, self._publisher, declared)

    def resources(self) -> list[Resource]:
        """Return every resource, and its recently used keys, by name."""
        return drive(self._gates("resources", RESOURCE, _resource_of))

    async def aresources(self) -> list[Resource]:
        """Async twin of `resources`."""
        return await adrive(self._gates("resources", RESOURCE, _resource_of))

    def circuits(self) -> list[CircuitStatus]:
        """Return every circuit that was ever configured, switched or used, by name."""
        return drive(self._gates("circuits", CIRCUIT, self._circuit_of))

    async def acircuits(self) -> list[CircuitStatus]:
        """Async twin of `circuits`."""
        return await adrive(self._gates("circuits", CIRCUIT, self._circuit_of))

    def _gates(self, action: str, prefix: str, view: Callable[[limits.GateRow], T]) -> Verb[list[T]]:
        yield from self._authorization.check(action)
        rows: list[limits.GateRow] = []
        while page := (yield from self._access.read(limits.gates, prefix, rows[-1].gate.name if rows else "")):
            rows += page
        return [view(row) for row in rows]

    def _circuit_of(self, row: limits.GateRow) -> CircuitStatus:
        return _circuit_of(row, self.settings.circuits.profile.value)


def _limit(cap: object, name: str, rate: object, per: object) -> limits.Limit:
    checked = check_rate(rate)
    return limits.Limit(check_cap(cap, name), checked, None if checked is None else check_per(per))


def _resource(name: str, cap: object, rate: object, per: object, retry_delay: object) -> tuple[str, limits.Limit]:
    limit = _limit(cap, "max_concurrent", rate, per)
    if limit.cap is None and limit.rate is None:
        raise InvalidOptionError(
            f"resource {name!r} needs a limit: give max_concurrent, rate or both, got None for both; "
            "jobs that need no permit leave resource= out"
        )
    retry_us = int(seconds(retry_delay, "retry_delay") * MICROSECONDS)
    if retry_us <= 0:
        raise InvalidOptionError(f"retry_delay must be more than 0 seconds, got {retry_delay!r}")
    return check_name(name, "resource"), limit._replace(retry_us=retry_us)


def _settings(profile: object, overrides: dict[str, Any]) -> CircuitSettings:
    if not isinstance(profile, CircuitProfile):
        names = ", ".join(f"CircuitProfile.{one.name}" for one in CircuitProfile)
        raise InvalidOptionError(f"profile must be one of {names}, got {profile!r}; single settings go by keyword")
    settings = profile.with_changes(**overrides)
    if settings.minimum_calls > settings.window:
        raise InvalidOptionError(
            f"minimum_calls must be at most the window of {settings.window} calls, got {settings.minimum_calls}: "
            "the circuit could never open"
        )
    return settings


def _open(circuit: Circuit, now: int) -> Circuit:
    return circuit.opened_by_hand(now)


def _close(circuit: Circuit, now: int) -> Circuit:
    del now
    return circuit if circuit.opens_at is None else circuit.closed()


def _reset(circuit: Circuit, now: int) -> Circuit:
    del now
    return circuit.closed()


def _resource_of(row: limits.GateRow) -> Resource:
    gate, lane = row.gate, read_lane(row.gate.name)
    return Resource(
        name=lane.resource or "",
        key=lane.resource_key,
        max_concurrent=gate.cap,
        in_use=gate.in_use,
        rate=gate.rate,
        per=per_of(gate.per_us),
        retry_delay=gate.retry_us / MICROSECONDS,
    )


def _circuit_of(row: limits.GateRow, default: CircuitSettings) -> CircuitStatus:
    circuit = (row.circuit or Circuit()).with_default(default)
    shown = circuit.trials if circuit.opens_at is not None else circuit.calls
    return CircuitStatus(
        service=row.gate.name.removeprefix(CIRCUIT),
        state=circuit.state(row.now),
        calls=len(shown),
        failures=shown.count("1"),
        opens_at=None if circuit.opens_at is None or circuit.held_open else from_micros(circuit.opens_at),
        held_open=circuit.held_open,
        settings=circuit.settings,
    )
