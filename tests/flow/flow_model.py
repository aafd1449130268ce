"""Random flows as values: what is in them, how each body ends, and what is done to them from outside."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random


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


def steps_of(chain: Chain) -> Iterator[Step]:
    """Every step of a flow."""
    for part in chain.parts:
        if isinstance(part, Step):
            yield part
            inside = [*(branch.flow for branch in part.branches), part.otherwise]
        else:
            inside = [*part.members, part.always, part.on_failure]
        for flow in inside:
            if flow is not None:
                yield from steps_of(flow)


@dataclass
class Author:
    """Writes random flows with at most so many steps."""

    random: Random
    steps: int = 24
    prefix: str = "s"
    _written: int = field(default=0, init=False)

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
        return Step(name, tuple(branches), otherwise, waits=self.random.random() < 0.1)

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

    def world(self, chain: Chain) -> World:
        """Return what happens to a flow."""
        names = [step.name for step in steps_of(chain)]
        broken = self._some(names, 0.15)
        waiting = [step.name for step in steps_of(chain) if step.waits]
        unsignaled = self._some(waiting, 0.4)
        return World(
            broken=broken,
            repaired=self._some(sorted(broken - unsignaled), 0.6),
            flaky=self._some(names, 0.1) - broken,
            canceled=self._some(names, 0.05),
            paused=self._some(names, 0.1),
            waiting=frozenset(waiting),
            unsignaled=unsignaled,
        )

    def _some(self, names: list[str], share: float) -> frozenset[str]:
        return frozenset(name for name in names if self.random.random() < share)
