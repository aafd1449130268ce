"""What becomes of a flow, by a plain recursion over its value: no store, no order, no counts."""

from collections.abc import Mapping

from tests.flow.flow_model import Branch, Chain, Members, Step, World

SUCCEEDED, FAILED, CANCELED, BY_USER = "SUCCEEDED", "FAILED", "CANCELED", "CANCELED by a user"


def predict(chain: Chain, world: World, before: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return how each step ends. `before`: how they had ended when the repaired ones were retried."""
    reference = _Reference(world, before or {})
    reference.chain(chain, goes=True)
    return reference.ends


class _Reference:
    def __init__(self, world: World, before: Mapping[str, str]) -> None:
        self._world = world
        self._before = before
        self.ends: dict[str, str] = {}

    def chain(self, chain: Chain, *, goes: bool) -> bool:
        """Evaluate a chain that is released, or not; return whether what follows it is released."""
        for part in chain.parts:
            goes = self._step(part, goes=goes) if isinstance(part, Step) else self._members(part, goes=goes)
        return goes

    def _step(self, step: Step, *, goes: bool) -> bool:
        end = self.ends[step.name] = self._end(step, goes=goes)
        if step.branches and step.branches[0].condition == "choose":
            self._choose(step, end)
        else:
            for branch in step.branches:
                self.chain(branch.flow, goes=_fires(branch, end))
        return end == SUCCEEDED

    def _end(self, step: Step, *, goes: bool) -> str:
        name, world = step.name, self._world
        before = self._before.get(name)
        if before in (SUCCEEDED, BY_USER):
            return before
        if before == FAILED:
            return SUCCEEDED if name in world.repaired else FAILED
        if name in world.canceled:
            return BY_USER
        if not goes:
            return CANCELED
        if name in world.unsignaled:
            return FAILED
        return FAILED if name in world.broken and (before is None or name not in world.repaired) else SUCCEEDED

    def _choose(self, step: Step, end: str) -> None:
        holding = [branch for branch in step.branches if branch.answer == "yes" and end == SUCCEEDED]
        for branch in step.branches:
            self.chain(branch.flow, goes=branch in holding[:1])
        if step.otherwise is not None:
            self.chain(step.otherwise, goes=end == SUCCEEDED and not holding)

    def _members(self, group: Members, *, goes: bool) -> bool:
        ends = [self.chain(member, goes=goes) for member in group.members]
        if group.on_failure is not None:
            self.chain(group.on_failure, goes=not all(ends))
        return all(ends) if group.always is None else self.chain(group.always, goes=True)


def _fires(branch: Branch, end: str) -> bool:
    if end not in (SUCCEEDED, FAILED):
        return False
    return {
        "success": end == SUCCEEDED,
        "failure": end == FAILED,
        "when": branch.answer == "yes",
        "when_result": end == SUCCEEDED and branch.answer == "yes",
    }[branch.condition]
