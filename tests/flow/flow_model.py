"""Random flows as values: what is in them, how each body ends, and what is done to them from outside."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from uuid import UUID


@dataclass(frozen=True)
class Branch:
    """A follower of one step under a condition."""

    condition: str
    """"success", "failure", "when" (on the result of any end), "when_result" (on a value), or "choose"."""
    answer: str
    """What its predicate does: "yes", "no" or "raises"."""
    flow: "Chain"


@dataclass(frozen=True)
class Step:
    """One job."""

    name: str
    branches: tuple[Branch, ...] = ()
    otherwise: "Chain | None" = None
    """What `choose` takes if none of its predicates holds."""
    waits: bool = False
    """Whether it waits for a signal first."""
    loads: "Batch | None" = None
    """What its body enqueues when it succeeds."""


@dataclass(frozen=True)
class Members:
    """A group, and what follows it."""

    members: tuple["Chain", ...]
    always: "Chain | None" = None
    """Follows any end; the next part of the chain follows this one then."""
    on_failure: "Chain | None" = None


@dataclass(frozen=True)
class Chain:
    """One part after the other."""

    parts: tuple[Step | Members, ...]


@dataclass(frozen=True)
class BatchFollower:
    """What follows a batch under a condition."""

    condition: str
    """"success", "failure", "rate" (of success), "count" (of failures), or "when" (on the progress)."""
    bound: float
    answer: str
    """What its predicate does: "yes", "no" or "raises"."""
    flow: Chain


@dataclass(frozen=True)
class Batch:
    """A batch, and what follows it."""

    name: str
    children: tuple[Step, ...]
    chunk_size: int
    followers: tuple[BatchFollower, ...]


Graph = Chain | Batch


@dataclass(frozen=True)
class World:
    """How bodies end, and what is done from outside."""

    broken: frozenset[str] = frozenset()
    """Steps that fail for good."""
    repaired: frozenset[str] = frozenset()
    """Broken ones that succeed once they are retried."""
    flaky: frozenset[str] = frozenset()
    """Steps whose first attempt fails, and whose second one does not."""
    canceled: frozenset[str] = frozenset()
    """Steps that are canceled before anything runs."""
    paused: frozenset[str] = frozenset()
    """Steps that are paused before anything runs, and resumed when nothing is left to run."""
    waiting: frozenset[str] = frozenset()
    """Steps that wait for a signal."""
    unsignaled: frozenset[str] = frozenset()
    """Those whose signal never comes."""


def steps_of(graph: Graph, *, loaded: bool = True) -> Iterator[Step]:
    """Every step of a flow or a batch, also in batches that are `loaded` by its steps."""
    inside: list[Graph | None] = []
    if isinstance(graph, Batch):
        yield from graph.children
        inside += [follower.flow for follower in graph.followers]
    else:
        for part in graph.parts:
            if isinstance(part, Step):
                yield part
                inside += [*(branch.flow for branch in part.branches), part.otherwise, part.loads if loaded else None]
            else:
                inside += [*part.members, part.always, part.on_failure]
    for one in inside:
        if one is not None:
            yield from steps_of(one, loaded=loaded)


def batches_of(graph: Graph) -> Iterator[Batch]:
    """Every batch: the graph itself, and those that its steps load."""
    if isinstance(graph, Batch):
        yield graph
    for step in steps_of(graph):
        if step.loads is not None:
            yield step.loads


def whole(graph: Graph) -> str | None:
    """The name of a batch; None for a flow."""
    return graph.name if isinstance(graph, Batch) else None


def in_cancel_order(graph: Graph, names: Iterable[str], ids: Mapping[str, UUID]) -> list[str]:
    """Return steps, and perhaps the batch, so that followers come before what they follow."""
    children = {child.name for child in graph.children} if isinstance(graph, Batch) else set()
    return sorted(names, key=lambda name: (name == whole(graph), name in children, -ids[name].int))


@dataclass
class Author:
    """Writes random flows with at most so many steps."""

    random: Random
    steps: int = 24
    prefix: str = "s"
    loads: bool = True
    """Whether steps load batches."""
    _written: int = field(default=0, init=False)

    def graph(self) -> Graph:
        """Return a flow or a batch."""
        return self._batch(0) if self.random.random() < 0.4 else self.chain(ends=True)

    def chain(self, depth: int = 0, *, ends: bool = False) -> Chain:
        """Return a chain. `ends` has it end in a step, which gives a flow that begins with a group its handle."""
        parts = [self._part(depth) for _ in range(self.random.choice((1, 1, 2, 2, 3)))]
        last = parts[-1]
        if isinstance(last, Members) and (ends or last.on_failure is not None):
            parts.append(self._step(depth))
        return Chain(tuple(parts))

    def _part(self, depth: int) -> Step | Members:
        if depth < 3 and self._written < self.steps and self.random.random() < 0.3:
            return self._members(depth + 1)
        return self._step(depth)

    def _step(self, depth: int) -> Step:
        self._written += 1
        name = f"{self.prefix}{self._written}"
        branches: list[Branch] = []
        otherwise = None
        if depth < 2 and self._written < self.steps and self.random.random() < 0.3:
            condition = self.random.choice(("success", "failure", "when", "when_result", "choose"))
            count = self.random.choice((1, 2))
            branches = [self._branch(condition, depth + 1) for _ in range(count)]
            if condition == "choose" and self.random.random() < 0.5:
                otherwise = self._branch_flow(depth + 1)
        waits = self.random.random() < 0.1
        loads = self.loads and depth < 2 and self._written < self.steps and self.random.random() < 0.08
        return Step(name, tuple(branches), otherwise, waits, self._batch(depth + 1) if loads else None)

    def _batch(self, depth: int) -> Batch:
        self._written += 1
        name = f"{self.prefix}{self._written} batch"
        children = tuple(Step(f"{name} child {number}") for number in range(self.random.choice((0, 1, 2, 5))))
        followers = tuple(self._batch_follower(depth + 1) for _ in range(self.random.choice((0, 1, 2, 3))))
        return Batch(name, children, self.random.randint(1, 3), followers)

    def _batch_follower(self, depth: int) -> BatchFollower:
        condition = self.random.choice(("success", "failure", "rate", "count", "when"))
        bound = self.random.choice((0.5, 0.8, 1.0)) if condition == "rate" else self.random.randint(1, 3)
        flow = self._branch_flow(depth) if condition == "when" else self.chain(depth)
        return BatchFollower(condition, bound, self.random.choice(("yes", "no", "raises")), flow)

    def _branch(self, condition: str, depth: int) -> Branch:
        return Branch(condition, self.random.choice(("yes", "no", "raises")), self._branch_flow(depth))

    def _branch_flow(self, depth: int) -> Chain:
        """Return a chain that begins with one job, as branches must."""
        return Chain((self._step(depth), *self.chain(depth + 1).parts[1:]))

    def _members(self, depth: int) -> Members:
        members = tuple(self.chain(depth) for _ in range(self.random.choice((1, 2, 3))))
        always = self.chain(depth + 1) if self.random.random() < 0.3 else None
        on_failure = self.chain(depth + 1) if self.random.random() < 0.3 else None
        return Members(members, always, on_failure)

    def world(self, graph: Graph) -> World:
        """Return what happens to a flow or a batch.

        What is loaded later cannot be canceled or paused before, and an empty batch has decided about its followers
        before they can be canceled.
        """
        names = [step.name for step in steps_of(graph)]
        stored = [step.name for step in steps_of(graph, loaded=False)]
        waits = not isinstance(graph, Batch) or bool(graph.children)
        whole = [graph.name] if isinstance(graph, Batch) else []
        broken = self._some(names, 0.15)
        waiting = [step.name for step in steps_of(graph) if step.waits]
        unsignaled = self._some(waiting, 0.4)
        return World(
            broken=broken,
            repaired=self._some(sorted(broken - unsignaled), 0.6),
            flaky=self._some(names, 0.1) - broken,
            canceled=self._some(stored, 0.05 if waits else 0) | self._some(whole, 0.1),
            paused=self._some(stored, 0.1) | self._some(whole, 0.3),
            waiting=frozenset(waiting),
            unsignaled=unsignaled,
        )

    def _some(self, names: list[str], share: float) -> frozenset[str]:
        return frozenset(name for name in names if self.random.random() < share)
