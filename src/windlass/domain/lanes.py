"""Lanes: where jobs wait that not every claim may take, and the gates they wait behind.

A job behind a resource, a key of a resource or a circuit, a run of a schedule that waits for the one before it, and a
job whose target some nodes do not know have a lane: a text with one part for each condition. Other jobs have no lane
and do not pay for this.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import accumulate
from typing import Final, NamedTuple
from urllib.parse import quote, unquote

QUEUE: Final = "queue:"
RESOURCE: Final = "resource:"
CIRCUIT: Final = "circuit:"
TARGET: Final = "target:"
SCHEDULE: Final = "schedule:"

MOST_LANES: Final = 64
"""Number of lanes that are checked at a time; if there are more, the next check continues from there."""


class Lane(NamedTuple):
    """The parts of a lane's text."""

    resource: str | None = None
    resource_key: str | None = None
    circuit: str | None = None
    target: str | None = None
    """Only nodes that know this target take its jobs; with predicates of its branches: `needed_targets`."""
    schedule: str | None = None
    """The schedule whose runs wait for each other."""

    @property
    def text(self) -> str | None:
        """The stored text; None if there is no condition."""
        target = None if self.target is None else TARGET + self.target
        return " ".join(part for part in (*self.gates, target) if part is not None) or None

    @property
    def resource_gate(self) -> str | None:
        """The gate of the resource, or of its key."""
        return None if self.resource is None else resource_gate(self.resource, self.resource_key)

    @property
    def gates(self) -> tuple[str, ...]:
        """The gates that a claim must pass, in the order in which they are locked."""
        circuit = None if self.circuit is None else CIRCUIT + self.circuit
        schedule = None if self.schedule is None else schedule_gate(self.schedule)
        return tuple(gate for gate in (circuit, self.resource_gate, schedule) if gate is not None)


NO_LANE: Final = Lane()


def resource_gate(name: str, key: str | None = None) -> str:
    """Return the gate of a resource; each key has its own gate."""
    return RESOURCE + name if key is None else f"{RESOURCE}{name}/{quote(key, safe='')}"


def schedule_gate(schedule_id: str) -> str:
    """Return the gate that lets one run of a schedule through at a time."""
    return SCHEDULE + schedule_id


def general_gate(gate: str) -> str:
    """Return the gate that serves as template for a key's gate: `resource:stripe/acme` → `resource:stripe`."""
    return gate.partition("/")[0]


@lru_cache(maxsize=4096)
def read_lane(text: str | None) -> Lane:
    """Parse a stored lane."""
    found = NO_LANE
    for part in text.split(" ") if isinstance(text, str) else ():
        if part.startswith(TARGET):
            found = found._replace(target=part.removeprefix(TARGET))
        elif part.startswith(CIRCUIT):
            found = found._replace(circuit=part.removeprefix(CIRCUIT))
        elif part.startswith(SCHEDULE):
            found = found._replace(schedule=part.removeprefix(SCHEDULE))
        elif part.startswith(RESOURCE):
            name, slash, key = part.removeprefix(RESOURCE).partition("/")
            found = found._replace(resource=name, resource_key=unquote(key) if slash else None)
    return found


_AND: Final = "|"
"""Separator of predicates; no stored name contains it."""
MAX_NEEDED: Final = 1_500
"""Longest list of predicates in a lane, in bytes: PostgreSQL indexes texts of up to some 2,700 bytes."""


def passed_over_lane(lane: str | None, target: str, predicates: Iterable[str] = ()) -> str:
    """Return the lane of a job whose target, or one of its predicates, is not known here; it keeps its gates.

    Of many predicates it names as many as fit: a node that knows these and not the others passes the job on.
    """
    given = tuple(predicates)
    lengths = accumulate(len(one.encode()) + len(_AND) for one in given)
    room = sum(length <= MAX_NEEDED for length in lengths)
    return read_lane(lane)._replace(target=_AND.join((target, *given[: max(1, room)]))).text or ""


def target_named(target: str) -> str:
    """Return the target of a lane for a message: `shop:assess, or its predicate shop:is_low_risk`."""
    own, predicates = needed_targets(target)
    return f"{own}, or its predicate {' or '.join(predicates)}" if predicates else own


def needed_targets(target: str) -> tuple[str, list[str]]:
    """Return the target of a lane, and the predicates that a node must know, too."""
    first, *predicates = target.split(_AND)
    return first, predicates
