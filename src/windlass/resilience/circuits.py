"""The follow-up that records calls in circuits, in the transaction of the outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from windlass.domain.circuit import CircuitSettings, ServiceCall
from windlass.domain.ended import Effects, Ended
from windlass.domain.job import Claim
from windlass.domain.lanes import CIRCUIT, read_lane
from windlass.domain.states import Move
from windlass.feature import Feature
from windlass.stores.dialect import Dialect
from windlass.stores.ending import FollowUp
from windlass.stores.plan import Plan
from windlass.stores.plans import limits
from windlass.stores.plans.permits import held_gates

CALLED: Final = frozenset({Move.SUCCEED, Move.FAIL, Move.REQUEUE})
"""Moves of attempts that may have called a service."""


def feature(default: CircuitSettings) -> Feature:
    """Return the circuits of an application and its nodes; `default` applies to those not configured."""
    return Feature("circuits", (FollowUp(CALLED, _called, CircuitRecorder(default).follow),))


def circuit_of(claim: Claim) -> str | None:
    """Return the circuit that a job's claim has passed; None for most jobs."""
    return None if claim.lane is None else read_lane(claim.lane).circuit


def is_trial(claim: Claim, circuit: str) -> bool:
    """Return whether the circuit let a job through as a trial."""
    return CIRCUIT + circuit in held_gates(claim.holds)


def _called(ended: Ended) -> bool:
    return ended.call is not None


class CircuitRecorder:
    """Records calls of attempts in the circuits of their services."""

    def __init__(self, default: CircuitSettings) -> None:
        self._default = default

    def follow(self, dialect: Dialect, ended: Sequence[Ended]) -> Plan[Effects]:
        """Record calls in the transaction of their outcomes."""
        calls: dict[str, list[ServiceCall]] = {}
        for job in ended:
            circuit = read_lane(job.lane).circuit
            if circuit is not None and job.call is not None:
                calls.setdefault(circuit, []).append(job.call)
        changes = yield from limits.record_calls(dialect, calls, self._default)
        return Effects(circuits=tuple(changes))
