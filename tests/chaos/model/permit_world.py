"""Two nodes before a gate that admits one, on PostgreSQL's rules: what READ COMMITTED shows a statement, and when.

A statement sees what was committed when it began. If it has to wait for a row's lock, it goes on with the newest
version of *that row*, and with the old picture of everything else. So a limit that is read from the locked row holds,
and one that is counted over other rows does not. Each step of a claim is a move of its own here.
"""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

from tests.chaos.model.explorer import Move

CAP = 1
DEFECTS = ("", "counted permits", "unfenced release")


class Node(NamedTuple):
    """A node on its way through the gate.

    Stages: `outside`, `begun` (its statement has its picture), `locked`, `inside` (permit committed), `ended` (body
    left, permit not given back yet), `away` (done).
    """

    letter: str
    stage: str = "outside"
    seen: int = 0
    """Permits in the picture its statement began with."""
    stalled: bool = False
    lost: bool = False
    """Marked lost: another node has released its permit, and its body no longer counts."""


class State(NamedTuple):
    """The gate's row, the permits' rows, and the nodes."""

    nodes: tuple[Node, ...]
    in_use: int = 0
    permits: frozenset[str] = frozenset()
    lock: str | None = None
    stalls: int = 1


class PermitWorld:
    """The world that is explored; a defect changes one step of it."""

    def __init__(self, defect: str = "", letters: str = "ab") -> None:
        self._defect = defect
        self._state = State(tuple(Node(letter) for letter in letters))

    def moves(self) -> Iterator[Move]:
        """By node."""
        for node in self._state.nodes:
            yield from (Move(partial(act, node)) for act in self._acts(node))

    @contextmanager
    def branch(self) -> Iterator[None]:
        """The state is a value."""
        before = self._state
        yield
        self._state = before

    def key(self) -> Hashable:
        """The state is a value."""
        return self._state

    def problems(self) -> list[str]:
        """(e) Never beyond the cap, and back to zero."""
        inside = [node.letter for node in self._state.nodes if node.stage == "inside" and not node.lost]
        found = []
        if len(inside) > CAP:
            found.append(f"the gate admits {CAP}, and {' and '.join(inside)} are inside")
        at_rest = all(node.stage in {"outside", "away"} for node in self._state.nodes)
        if at_rest and (self._state.in_use or self._state.permits):
            found.append(f"nobody is inside, and the gate counts {self._state.in_use} in use")
        return found

    def _acts(self, node: Node) -> Iterator[Callable[[Node], str]]:
        state = self._state
        if node.stalled:
            yield self._wake
            if node.stage == "inside" and not node.lost and state.lock is None:
                yield self._give_up
            return
        match node.stage:
            case "outside":
                yield self._begin
            case "begun" if state.lock is None:
                yield self._lock
            case "locked":
                yield self._take
            case "inside":
                yield self._end
                if state.stalls:
                    yield self._stall
            case "ended" if state.lock is None:
                yield self._give_back

    # ------------------------------------------------------------------ the claim, statement by statement

    def _begin(self, node: Node) -> str:
        self._change(node, stage="begun", seen=len(self._state.permits))
        return f"{node.letter} begins to claim; {len(self._state.permits)} permits are in its picture"

    def _lock(self, node: Node) -> str:
        self._change(node, stage="locked")
        self._state = self._state._replace(lock=node.letter)
        return f"{node.letter} gets the lock on the gate's row, which says {self._state.in_use} in use"

    def _take(self, node: Node) -> str:
        used = node.seen if self._defect == "counted permits" else self._state.in_use
        self._state = self._state._replace(lock=None)
        if used >= CAP:
            self._change(node, stage="outside")
            return f"{node.letter} finds no place, and commits"
        taken = self._state.permits | {node.letter}
        self._state = self._state._replace(in_use=self._state.in_use + 1, permits=taken)
        self._change(node, stage="inside")
        return f"{node.letter} finds {used} of {CAP} places taken, takes one, commits, and enters the body"

    # ------------------------------------------------------------------ and back

    def _end(self, node: Node) -> str:
        self._change(node, stage="ended")
        return f"the body ends on {node.letter}"

    def _give_back(self, node: Node) -> str:
        """Guarded: the permit's row must still be there, that is, no other node has released it."""
        held = node.letter in self._state.permits
        self._change(node, stage="away")
        if held or self._defect == "unfenced release":
            self._free(node)
            return f"{node.letter} gives its permit back: {self._state.in_use} in use"
        return f"{node.letter} gives its permit back: refused"

    def _give_up(self, node: Node) -> str:
        self._change(node, lost=True)
        self._free(node)
        return f"the lease of {node.letter} runs out, and its permit is freed: {self._state.in_use} in use"

    def _free(self, node: Node) -> None:
        left = self._state.permits - {node.letter}
        self._state = self._state._replace(in_use=self._state.in_use - 1, permits=left)

    def _stall(self, node: Node) -> str:
        self._state = self._state._replace(stalls=self._state.stalls - 1)
        self._change(node, stalled=True)
        return f"{node.letter} stands still"

    def _wake(self, node: Node) -> str:
        self._change(node, stalled=False)
        return f"{node.letter} wakes up"

    def _change(self, node: Node, **changes: object) -> None:
        nodes = tuple(
            each._replace(**changes) if each.letter == node.letter else each  # type: ignore[arg-type]
            for each in self._state.nodes
        )
        self._state = self._state._replace(nodes=nodes)
