"""What becomes of a flow, by a plain recursion over its value: no store, no order, no counts."""

from collections.abc import Mapping
from enum import Enum, auto

from tests.flow.flow_model import Batch, BatchFollower, Branch, Chain, Graph, Members, Step, World

SUCCEEDED, FAILED, CANCELED, BY_USER = "SUCCEEDED", "FAILED", "CANCELED", "CANCELED by a user"


class Way(Enum):
    """What the parts before one have decided about it."""

    GOES = auto()
    """It is released."""
    STOPS = auto()
    """Something before it has failed or was canceled."""
    NOT_CHOSEN = auto()
    """It is in a branch that is not taken: nothing in it runs, whatever follows its groups."""


def predict(graph: Graph, world: World, before: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return how each step and each batch ends. `before`: how they had ended when the repaired ones were retried."""
    reference = _Reference(world, before or {}, repaired=world.repaired if before is not None else frozenset())
    if isinstance(graph, Batch):
        reference.batch(graph)
    else:
        reference.chain(graph, Way.GOES)
    return reference.ends


class _Reference:
    def __init__(self, world: World, before: Mapping[str, str], repaired: frozenset[str]) -> None:
        self._world = world
        self._broken = world.broken - repaired
        self._before = before
        self.ends: dict[str, str] = {}

    def chain(self, chain: Chain, way: Way) -> Way:
        """Evaluate a chain, and return what it decides about what follows it."""
        for part in chain.parts:
            way = self._step(part, way) if isinstance(part, Step) else self._members(part, way)
        return way

    def _step(self, step: Step, way: Way) -> Way:
        end = self.ends[step.name] = self._end(step, goes=way is Way.GOES)
        behind = way if end == CANCELED else Way.GOES if end == SUCCEEDED else Way.STOPS
        taken = _chosen(step, end) if step.branches and step.branches[0].condition == "choose" else _fired(step, end)
        for branch in step.branches:
            self._branch(branch.flow, end, behind, fires=branch in taken)
        if step.otherwise is not None:
            self._branch(step.otherwise, end, behind, fires=end == SUCCEEDED and not taken)
        if step.loads is not None and end == SUCCEEDED:
            self.batch(step.loads)
        return behind

    def _branch(self, flow: Chain, end: str, behind: Way, *, fires: bool) -> None:
        """Evaluate a branch: the end of its job takes it or not, and one that was canceled decides nothing."""
        not_taken = Way.NOT_CHOSEN if end in (SUCCEEDED, FAILED) else behind
        self.chain(flow, Way.GOES if fires else not_taken)

    def _end(self, step: Step, *, goes: bool) -> str:
        name, world = step.name, self._world
        before = self._before.get(name)
        if before in (SUCCEEDED, BY_USER):
            return before
        if before == FAILED:
            return SUCCEEDED if name in world.broken - self._broken else FAILED
        if name in world.canceled:
            return BY_USER
        if not goes:
            return CANCELED
        if name in world.unsignaled:
            return FAILED
        return FAILED if name in self._broken else SUCCEEDED

    def batch(self, batch: Batch) -> None:
        """Evaluate a batch. One whose children are all canceled before has ended, and is not canceled then."""
        canceled = batch.name in self._world.canceled and not self._world.canceled >= {c.name for c in batch.children}
        for child in batch.children:
            self.ends[child.name] = BY_USER if canceled else self._end(child, goes=True)
        failed = sum(self.ends[child.name] != SUCCEEDED for child in batch.children)
        self.ends[batch.name] = BY_USER if canceled else FAILED if failed else SUCCEEDED
        for follower in batch.followers:
            if canceled or (follower.condition == "success" and failed):
                self.chain(follower.flow, Way.STOPS)
            else:
                fires = _follows_batch(follower, len(batch.children), failed)
                self.chain(follower.flow, Way.GOES if fires else Way.NOT_CHOSEN)

    def _members(self, group: Members, way: Way) -> Way:
        ends = {self.chain(member, way) for member in group.members}
        behind = next(one for one in (Way.STOPS, Way.NOT_CHOSEN, Way.GOES) if one in ends)
        chosen = Way.NOT_CHOSEN not in ends
        if group.on_failure is not None:
            self.chain(group.on_failure, Way.GOES if chosen and behind is Way.STOPS else Way.NOT_CHOSEN)
        return behind if group.always is None else self.chain(group.always, Way.GOES if chosen else Way.NOT_CHOSEN)


def _follows_batch(follower: BatchFollower, total: int, failed: int) -> bool:
    return {
        "success": failed == 0,
        "failure": failed > 0,
        "rate": total == 0 or (total - failed) / total >= follower.bound,
        "count": failed >= follower.bound,
        "when": follower.answer == "yes",
    }[follower.condition]


def _chosen(step: Step, end: str) -> list[Branch]:
    return [branch for branch in step.branches if branch.answer == "yes" and end == SUCCEEDED][:1]


def _fired(step: Step, end: str) -> list[Branch]:
    return [branch for branch in step.branches if _fires(branch, end)]


def _fires(branch: Branch, end: str) -> bool:
    if end not in (SUCCEEDED, FAILED):
        return False
    return {
        "success": end == SUCCEEDED,
        "failure": end == FAILED,
        "when": branch.answer == "yes",
        "when_result": end == SUCCEEDED and branch.answer == "yes",
    }[branch.condition]
