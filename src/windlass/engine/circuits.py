"""What circuits learn from attempts: a consequence of the completer, in the transaction of the outcomes."""

from __future__ import annotations

from collections.abc import Sequence

from windlass.domain.circuit import Call, CircuitSettings, class_names
from windlass.domain.lanes import CIRCUIT, read_lane
from windlass.engine.attempt import Attempt, Ending, Raised, Returned
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan
from windlass.stores.plans import limits
from windlass.stores.plans.permits import held_places


def circuit_name(attempt: Attempt) -> str | None:
    """The circuit an attempt stands behind; None for nearly all."""
    lane = attempt.claim.lane
    return None if lane is None else read_lane(lane).circuit


def on_trial(attempt: Attempt, circuit: str) -> bool:
    """Whether its circuit let it through to see how it fares."""
    return CIRCUIT + circuit in held_places(attempt.claim.holds)


def call_of(attempt: Attempt, ending: Ending) -> Call | None:
    """How the call to its service ended; None if there was none, or it says nothing about the service."""
    circuit = circuit_name(attempt)
    if circuit is None:
        return None
    match ending:
        case Returned():
            return Call(trial=on_trial(attempt, circuit))
        case Raised(error):
            return Call(class_names(type(error)), on_trial(attempt, circuit))
        case _:
            return None


class CircuitRecorder:
    """Has circuits learn from what was won, and keeps what changed by it until it is told."""

    def __init__(self, default: CircuitSettings) -> None:
        self._default = default
        self._changes: list[limits.CircuitChange] = []

    @staticmethod
    def concerns(attempt: Attempt) -> bool:
        """Whether it called a service that has a circuit."""
        return attempt.call is not None

    def record(self, dialect: Dialect, attempts: Sequence[Attempt]) -> Plan[None]:
        """In the transaction of their outcomes."""
        calls: dict[str, list[Call]] = {}
        for attempt in attempts:
            circuit = circuit_name(attempt)
            if circuit is not None and attempt.call is not None:
                calls.setdefault(circuit, []).append(attempt.call)
        self._changes = yield from limits.record_calls(dialect, calls, self._default)

    def take(self) -> list[limits.CircuitChange]:
        """What changed with the last commit, once."""
        changes, self._changes = self._changes, []
        return changes
