"""What an application can set for the whole cluster while it runs: limits of queues, resources, circuits."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final, NamedTuple

from windlass.client.access import Access
from windlass.client.aftermath import Aftermath
from windlass.client.authorization import Authorization
from windlass.domain.circuit import Circuit, CircuitProfile, CircuitSettings, CircuitState
from windlass.domain.clock import from_micros
from windlass.domain.durations import seconds
from windlass.domain.keys import check_name, check_queue
from windlass.domain.lanes import CIRCUIT, RESOURCE, read_lane
from windlass.domain.limits import CircuitStatus, Per, Resource, check_cap, check_per, check_rate, per_of
from windlass.errors import InvalidOptionError
from windlass.settings import Settings
from windlass.stores.plans import limits
from windlass.submission.declared_names import declared_circuits, declared_queues
from windlass.submission.registry import Registry

MICROSECONDS: Final = 1_000_000


class CircuitSwitch(NamedTuple):
    """A circuit to look at and to switch by hand, from `app.circuit(name)`."""

    service: str
    access: Access
    told: Callable[[list[limits.CircuitChange]], None]
    authorization: Authorization
    registry: Registry

    def state(self) -> CircuitState:
        """Whether it lets jobs through."""
        self.authorization.check("circuits")
        return self.access.read(limits.circuit_state, self.service)

    async def astate(self) -> CircuitState:
        """Async twin of `state`."""
        await self.authorization.acheck("circuits")
        return await self.access.aread(limits.circuit_state, self.service)

    def open(self, *, create: bool = False) -> None:
        """Let nothing through, until somebody closes or resets it.

        `UnknownCircuitError` if it was never used and no job is declared with it, unless `create` says it is meant.
        """
        self.authorization.check("open_circuit")
        declared = None if create else declared_circuits(self.registry)
        self.told(self.access.run(limits.steer_circuit, self.service, _open, declared))

    async def aopen(self, *, create: bool = False) -> None:
        """Async twin of `open`."""
        await self.authorization.acheck("open_circuit")
        declared = None if create else declared_circuits(self.registry)
        self.told(await self.access.arun(limits.steer_circuit, self.service, _open, declared))

    def close(self) -> None:
        """Let everything through, if it does not already; its failures so far are forgotten."""
        self.authorization.check("close_circuit")
        self.told(self.access.run(limits.steer_circuit, self.service, _close, declared_circuits(self.registry)))

    async def aclose(self) -> None:
        """Async twin of `close`."""
        await self.authorization.acheck("close_circuit")
        self.told(await self.access.arun(limits.steer_circuit, self.service, _close, declared_circuits(self.registry)))

    def reset(self) -> None:
        """Close it and forget every call it has counted, whatever state it is in."""
        self.authorization.check("reset_circuit")
        self.told(self.access.run(limits.steer_circuit, self.service, _reset, declared_circuits(self.registry)))

    async def areset(self) -> None:
        """Async twin of `reset`."""
        await self.authorization.acheck("reset_circuit")
        self.told(await self.access.arun(limits.steer_circuit, self.service, _reset, declared_circuits(self.registry)))


class Protection:
    """The protecting half of an application: what is set holds for all nodes, at once, and is kept in the store."""

    _access: Access
    _aftermath: Aftermath
    _authorization: Authorization
    registry: Registry
    settings: Settings

    def limit_queue(
        self,
        name: str,
        concurrency: int | None = None,
        rate: int | None = None,
        per: Per = "second",
        *,
        create: bool = False,
    ) -> None:
        """Let so many jobs of a queue run at a time, and so many start in a second, minute, hour or day.

        Both None lift the limit. What runs already counts, and goes on. `UnknownQueueError` if no job was ever in the
        queue and none is declared with it, unless `create` says it is meant: `app.limit_queue("mail", rate=100)`
        """
        self._authorization.check("limit_queue")
        limit = _limit(concurrency, "concurrency", rate, per)
        declared = None if create else declared_queues(self.registry)
        self._access.run(limits.limit_queue, check_queue(name), limit, declared)
        self._aftermath.look_again()

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
        await self._authorization.acheck("limit_queue")
        limit = _limit(concurrency, "concurrency", rate, per)
        declared = None if create else declared_queues(self.registry)
        await self._access.arun(limits.limit_queue, check_queue(name), limit, declared)
        self._aftermath.look_again()

    def configure_resource(
        self,
        name: str,
        max_concurrent: int | None,
        rate: int | None = None,
        per: Per = "second",
        retry_delay: float | timedelta = 5,
    ) -> None:
        """Say how many jobs may use a resource at a time, and how many may start on it in a stretch of time.

        Jobs ask for it with `resource=`; those with a `resource_key` share the permits of that key, and each key has
        as many. `retry_delay` is when to look again, should word of a free permit get lost.
        """
        self._authorization.check("configure_resource")
        self._access.run(limits.configure_resource, *_resource(name, max_concurrent, rate, per, retry_delay))
        self._aftermath.look_again()

    async def aconfigure_resource(
        self,
        name: str,
        max_concurrent: int | None,
        rate: int | None = None,
        per: Per = "second",
        retry_delay: float | timedelta = 5,
    ) -> None:
        """Async twin of `configure_resource`."""
        await self._authorization.acheck("configure_resource")
        await self._access.arun(limits.configure_resource, *_resource(name, max_concurrent, rate, per, retry_delay))
        self._aftermath.look_again()

    def configure_circuit(self, name: str, profile: CircuitProfile = CircuitProfile.DEFAULT, **overrides: Any) -> None:
        """Say when the circuit of a service opens and closes: a profile, and what differs from it.

        `app.configure_circuit("payment-gateway", CircuitProfile.FAST, ignore=[CardDeclined])`. Overrides:
        `failure_rate, window, minimum_calls, open_wait, trials, record, ignore`.
        """
        self._authorization.check("configure_circuit")
        self._access.run(limits.configure_circuit, check_name(name, "circuit"), _settings(profile, overrides))

    async def aconfigure_circuit(
        self, name: str, profile: CircuitProfile = CircuitProfile.DEFAULT, **overrides: Any
    ) -> None:
        """Async twin of `configure_circuit`."""
        await self._authorization.acheck("configure_circuit")
        await self._access.arun(limits.configure_circuit, check_name(name, "circuit"), _settings(profile, overrides))

    def circuit(self, name: str) -> CircuitSwitch:
        """A circuit, to look at and to switch by hand: `app.circuit("payment-gateway").open()`."""
        return CircuitSwitch(
            check_name(name, "circuit"),
            self._access,
            self._aftermath.circuits_changed,
            self._authorization,
            self.registry,
        )

    def resources(self) -> list[Resource]:
        """Every resource, and the keys of it that were used lately, by name."""
        self._authorization.check("resources")
        return [_resource_of(row) for row in self._gates(RESOURCE)]

    async def aresources(self) -> list[Resource]:
        """Async twin of `resources`."""
        await self._authorization.acheck("resources")
        return [_resource_of(row) for row in await self._agates(RESOURCE)]

    def circuits(self) -> list[CircuitStatus]:
        """Every circuit that was ever configured, switched or learned from, by name."""
        self._authorization.check("circuits")
        return [_circuit_of(row, self.settings.circuits.profile.value) for row in self._gates(CIRCUIT)]

    async def acircuits(self) -> list[CircuitStatus]:
        """Async twin of `circuits`."""
        await self._authorization.acheck("circuits")
        return [_circuit_of(row, self.settings.circuits.profile.value) for row in await self._agates(CIRCUIT)]

    def _gates(self, prefix: str) -> list[limits.GateRow]:
        rows: list[limits.GateRow] = []
        while page := self._access.read(limits.gates, prefix, rows[-1].gate.name if rows else ""):
            rows += page
        return rows

    async def _agates(self, prefix: str) -> list[limits.GateRow]:
        rows: list[limits.GateRow] = []
        while page := await self._access.aread(limits.gates, prefix, rows[-1].gate.name if rows else ""):
            rows += page
        return rows


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
