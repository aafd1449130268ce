"""Random flows as calls of jobs."""

from collections.abc import Callable, Mapping
from typing import Any

from tests.flow.flow_model import Batch, Branch, Chain, Members, Step
from windlass import Windlass, group

Predicate = Callable[[Any], object]


class Builder:
    """Makes calls of steps, and links them."""

    def __init__(self, call: Callable[[Step], Any], predicates: Mapping[str, Predicate]) -> None:
        self._call = call
        self._predicates = predicates
        """By what they answer."""

    def flow(self, chain: Chain) -> Any:
        """Return a chain as a flow."""
        first, *others = [self._step(part) if isinstance(part, Step) else self._group(part) for part in chain.parts]
        for part in others:
            first = first.then(part)
        return first

    def batch(self, app: Windlass, batch: Batch, job: Any) -> Any:
        """Return a batch, whose children call `job`."""
        made: Any = app.batch(batch.name, idempotency_key=batch.name)
        made = made.each(job, [child.name for child in batch.children], chunk_size=batch.chunk_size)
        for one in batch.followers:
            flow = self.flow(one.flow)
            if one.condition == "success":
                made = made.then_on_batch_success(flow)
            elif one.condition == "failure":
                made = made.then_on_batch_failure(flow)
            elif one.condition == "rate":
                made = made.when_success_rate(one.bound, flow)
            elif one.condition == "count":
                made = made.when_failure_count(one.bound, flow)
            else:
                made = made.when_batch(self._predicates[one.answer], flow)
        return made

    def _group(self, members: Members) -> Any:
        made: Any = group(*(self.flow(member) for member in members.members))
        if members.on_failure is not None:
            made = made.then_on_failure(self.flow(members.on_failure))
        if members.always is not None:
            made = made.then_always(self.flow(members.always))
        return made

    def _step(self, step: Step) -> Any:
        made = self._call(step)
        chosen = [branch for branch in step.branches if branch.condition == "choose"]
        for branch in step.branches:
            if branch not in chosen:
                made = self._branch(made, branch)
        if chosen:
            pairs = [(self._predicates[branch.answer], self.flow(branch.flow)) for branch in chosen]
            otherwise = {} if step.otherwise is None else {"otherwise": self.flow(step.otherwise)}
            made = made.choose(*pairs, **otherwise)
        return made

    def _branch(self, made: Any, branch: Branch) -> Any:
        follower = self.flow(branch.flow)
        if branch.condition == "success":
            return made.then_on_success(follower)
        if branch.condition == "failure":
            return made.then_on_failure(follower)
        verb = made.when if branch.condition == "when" else made.when_result
        return verb(self._predicates[branch.answer], follower)
