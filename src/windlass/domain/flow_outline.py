"""The outline of a flow, from which it is drawn: lines of steps, with the members of groups and branches inside. Pure.

The graph knows which job follows which and which job counts for which group, not where a group begins. A group begins
behind what all of its members descend from: their lowest common ancestor.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from windlass.domain.flow_graph import EdgeKind, FlowGraph, FlowGroup, FlowNode
from windlass.domain.states import JobStatus

_START: Final = UUID(int=0)
"""What the first steps of a flow descend from."""


@dataclass(slots=True)
class OutlineStep:
    """A job, a group with its members, or steps that are folded; and the branches behind it."""

    content: FlowNode | FlowGroup | Fold
    members: list[OutlineLine] = field(default_factory=list)
    """For a group: its members, which run concurrently."""
    folded: Fold | None = None
    """For a group: the members that are not in `members`."""
    branches: list[OutlineBranch] = field(default_factory=list)
    """What follows it beside the next step of its line."""
    kind: EdgeKind = "then"
    """How it follows the step before it."""


OutlineLine = list[OutlineStep]
"""Steps one after another."""


@dataclass(slots=True)
class OutlineBranch:
    """A line that begins behind a step."""

    kind: EdgeKind
    line: OutlineLine
    label: str = ""


@dataclass(frozen=True, slots=True)
class Fold:
    """Lines or steps that are not shown one by one."""

    count: int
    """How many members of a group, or steps of a line."""
    jobs: Mapping[JobStatus, int]
    """Their jobs by state."""


def outline(graph: FlowGraph) -> list[OutlineLine]:
    """Return the lines of a flow: one, unless a part of it is missing."""
    descent = _Descent(graph)
    return [descent.line(first) for first in descent.followers(_START)]


class _Descent:
    """What descends from what. Keys are the ids of jobs and groups."""

    def __init__(self, graph: FlowGraph) -> None:
        self._nodes = {node.id: node for node in graph.nodes}
        self._groups = {group.id: group for group in graph.groups}
        self._edges = {edge.child_id: edge for edge in graph.edges}
        self._order = {key: number for number, key in enumerate([_START, *self._nodes])}
        self._parents: dict[UUID, UUID] = {_START: _START}
        self._depths = {_START: 0}
        self._heads: dict[UUID, list[UUID]] = {}
        """The first step of each member of a group: a job, or a nested group."""
        for key in self._parents_first():
            if key in self._groups:
                self._add_group(self._groups[key])
            else:
                edge = self._edges.get(key)
                self._add(key, edge.parent_id if edge is not None and edge.parent_id in self._depths else _START)
        self._children: dict[UUID, list[UUID]] = defaultdict(list)
        inside = {head for heads in self._heads.values() for head in heads}
        for key in sorted(self._parents.keys() - inside - {_START}, key=self._order.__getitem__):
            self._children[self._parents[key]].append(key)

    def _parents_first(self) -> Iterator[UUID]:
        """Yield jobs behind what they follow, and groups behind their members."""
        waiting: dict[UUID, list[UUID]] = defaultdict(list)
        missing: Counter[UUID] = Counter()
        for edge in self._edges.values():
            if edge.parent_id in self._nodes or edge.parent_id in self._groups:
                waiting[edge.parent_id].append(edge.child_id)
                missing[edge.child_id] += 1
        for group in self._groups.values():
            for member in group.members:
                waiting[member].append(group.id)
                missing[group.id] += 1
        ready = deque(key for key in (*self._nodes, *self._groups) if not missing[key])
        while ready:
            key = ready.popleft()
            yield key
            for other in waiting[key]:
                missing[other] -= 1
                if not missing[other]:
                    ready.append(other)

    def _add(self, key: UUID, parent: UUID) -> None:
        self._parents[key], self._depths[key] = parent, self._depths[parent] + 1

    def _add_group(self, group: FlowGroup) -> None:
        entrance, below = self._common_ancestor(group.members)
        heads = [key for key in below if self._parents[key] == entrance]
        self._heads[group.id] = sorted(heads, key=self._order.__getitem__)
        self._order[group.id] = min(self._order[key] for key in heads)
        self._add(group.id, entrance)

    def _common_ancestor(self, members: Sequence[UUID]) -> tuple[UUID, set[UUID]]:
        """Return the lowest common ancestor of some jobs, and everything between it and them."""
        levels: dict[int, set[UUID]] = defaultdict(set)
        for member in members:
            levels[self._depths[member]].add(member)
        depth, passed, alive = max(levels), set[UUID](), len(set(members))
        while True:  # all those of one depth move up together, and meet
            level = levels.pop(depth)
            passed |= level
            above = levels[depth - 1]
            alive -= len(level) + len(above)
            above |= {self._parents[key] for key in level}
            alive += len(above)
            depth -= 1
            if alive == 1:
                return next(iter(above)), passed

    def followers(self, key: UUID) -> list[UUID]:
        """Return the jobs and groups that follow, each the first of its line, in order."""
        return self._children.get(key, [])

    def _kind(self, key: UUID) -> EdgeKind:
        while key in self._groups:
            key = self._heads[key][0]
        edge = self._edges.get(key)
        return "then" if edge is None else edge.kind

    def _label(self, key: UUID) -> str:
        edge = self._edges.get(key)
        return "" if edge is None else edge.label

    def line(self, first: UUID) -> OutlineLine:
        """Return the line that begins with a job or group."""
        steps: OutlineLine = []
        key: UUID | None = first
        while key is not None:
            step = OutlineStep(self._nodes.get(key) or self._groups[key], kind=self._kind(key))
            step.members = [self.line(head) for head in self._heads.get(key, ())]
            followers = self.followers(key)
            key = self._next(followers)
            step.branches = [
                OutlineBranch(self._kind(one), self.line(one), self._label(one)) for one in followers if one != key
            ]
            steps.append(step)
        return steps

    def _next(self, followers: Sequence[UUID]) -> UUID | None:
        """Return what continues the line: the follower after success, else the one that always follows."""
        for kind in ("then", "always"):
            found = [key for key in followers if self._kind(key) == kind]
            if found:
                return found[0] if len(found) == 1 else None
        return None


def jobs_of(line: Iterable[OutlineStep]) -> Iterator[FlowNode]:
    """Yield every job of a line, with those of members and branches."""
    for step in line:
        if isinstance(step.content, FlowNode):
            yield step.content
        for member in step.members:
            yield from jobs_of(member)
        for branch in step.branches:
            yield from jobs_of(branch.line)
