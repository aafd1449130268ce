"""Lanes: where jobs wait that not every claim may take, and which gates they wait behind.

A job behind a resource, a key of it or a circuit, and one of a target that some nodes do not know, carries a lane: a
text of words, one for each thing that may hold it up. All others carry none, and their path knows nothing of this.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import quote, unquote

QUEUE: Final = "queue:"
RESOURCE: Final = "resource:"
CIRCUIT: Final = "circuit:"
TARGET: Final = "target:"

MOST_LANES: Final = 64
"""Lanes that are looked at in one go; where there are more, the next look goes on from there."""


class Lane(NamedTuple):
    """What a lane's text says."""

    resource: str | None = None
    resource_key: str | None = None
    circuit: str | None = None
    target: str | None = None
    """Its jobs are left to nodes that know this target."""

    @property
    def text(self) -> str | None:
        """The words, or None if nothing holds these jobs up."""
        target = None if self.target is None else TARGET + self.target
        return " ".join(word for word in (*self.gates, target) if word is not None) or None

    @property
    def resource_gate(self) -> str | None:
        """The gate of the resource, or of its key."""
        return None if self.resource is None else resource_gate(self.resource, self.resource_key)

    @property
    def gates(self) -> tuple[str, ...]:
        """The gates that a claim must pass, in the order in which they are locked."""
        circuit = None if self.circuit is None else CIRCUIT + self.circuit
        return tuple(gate for gate in (circuit, self.resource_gate) if gate is not None)


NO_LANE: Final = Lane()


def resource_gate(name: str, key: str | None = None) -> str:
    """The gate of a resource; each key has one of its own."""
    return RESOURCE + name if key is None else f"{RESOURCE}{name}/{quote(key, safe='')}"


def general_gate(gate: str) -> str:
    """The gate that a key's gate is made after: `resource:stripe/acme` → `resource:stripe`."""
    return gate.partition("/")[0]


@lru_cache(maxsize=4096)
def read_lane(text: str | None) -> Lane:
    """What a stored lane says."""
    found = NO_LANE
    for word in text.split(" ") if isinstance(text, str) else ():
        if word.startswith(TARGET):
            found = found._replace(target=word.removeprefix(TARGET))
        elif word.startswith(CIRCUIT):
            found = found._replace(circuit=word.removeprefix(CIRCUIT))
        elif word.startswith(RESOURCE):
            name, slash, key = word.removeprefix(RESOURCE).partition("/")
            found = found._replace(resource=name, resource_key=unquote(key) if slash else None)
    return found


def left_to_others(lane: str | None, target: str) -> str:
    """The lane of a job whose target is not known here: it keeps its gates."""
    return read_lane(lane)._replace(target=target).text or ""
