"""The layout of a flow: which job follows which, and which jobs count for which group. Pure.

Jobs are numbered so that parents come before their followers, and all steps of a member before those of the next one:
the order of ids is then the order of results, and of locks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, Final, NamedTuple

from windlass.domain.branches import MAX_BRANCHES, OF_OUTCOME, OF_VALUE, BranchKind
from windlass.domain.dependencies import MAX_FLOW_ROWS, Follows
from windlass.errors import InvalidOptionError
from windlass.submission.call import Call, CallStep, Flow, GroupStep

MAX_DEPTH: Final = 50
"""How deep groups and branches may be nested."""
_FOLLOWS: Final[Mapping[BranchKind, Follows]] = {
    "success": Follows.SUCCESS,
    "failure": Follows.FAILURE,
    "result": Follows.DECIDED,
    "custom": Follows.DECIDED,
}
Predicate = Callable[[Any], Any]
_ONE: Final = 1
"""The shape of a member that is not a group."""


class LaidGroup:
    """A group of a flow."""

    def __init__(self) -> None:
        self.number: int | None = None
        """Inner groups come before outer ones, which is the order in which they are locked."""


class LaidJob:
    """A job of a flow, and what it depends on."""

    def __init__(self, call: Call[Any], parent: Parent | None, group: LaidGroup | None) -> None:
        self.call = call
        self.parent = parent
        self.group = group
        """The group that it counts for."""
        self.leads: set[Follows] = set()
        """The ways in which others follow it."""
        self.branches: list[LaidBranch] = []
        """Its branches, in the order of their evaluation."""
        self.guard: LaidGuard | None = None
        """The condition under which it follows its parent."""
        self.answers = False
        """Whether the handle of the flow is that of this job."""


class LaidGuard(NamedTuple):
    """The predicates of a job, in the order in which they are called."""

    about: str
    predicate: Predicate | None
    unless: tuple[Predicate, ...]
    description: str


class LaidBranch(NamedTuple):
    """A branch of a job."""

    child: int
    """The number of its first job."""
    kind: BranchKind
    predicate: Predicate | None
    choice: int | None
    description: str


class Parent(NamedTuple):
    """What a step follows, and how."""

    job: int | None
    """The number of the job; None: it is a group."""
    group: LaidGroup | None
    shape: list[Any] | None
    """The form of that group's results, if it has nested groups."""
    follows: Follows = Follows.THEN


class Layout(NamedTuple):
    """The jobs of a flow in the order of their ids, and the number of its groups."""

    jobs: list[LaidJob]
    groups: int


def layout_of(flow: Flow[Any]) -> Layout:
    """Return the layout of a flow, or raise `InvalidOptionError` for one that cannot be stored."""
    plan = _Plan()
    answering = answering_call(flow)
    plan.lay(flow, None, Follows.THEN, None, 0)
    for job in plan.jobs:
        job.answers = job.call is answering
    return Layout(plan.jobs, plan.groups)


class _Plan:
    """The layout in progress."""

    def __init__(self) -> None:
        self.jobs: list[LaidJob] = []
        self.groups = 0
        self._seen: set[int] = set()

    def lay(
        self, flow: Flow[Any], source: Parent | None, follows: Follows, counts_for: LaidGroup | None, depth: int
    ) -> Any:
        """Add the steps of a flow; its last one counts for a group, if given. Return the shape of its result."""
        if depth > MAX_DEPTH:
            raise InvalidOptionError(
                f"groups and branches are nested more than {MAX_DEPTH} deep; join inner ones by steps"
            )
        last = len(flow.steps) - 1
        for number, step in enumerate(flow.steps):
            follows = step.follows if number else follows
            source = None if source is None else source._replace(follows=follows)
            ends_in = counts_for if number == last else None
            if isinstance(step, CallStep):
                added = self._add(step.call, source, ends_in)
                source = Parent(added, None, None)
                self._lay_branches(step, source, added, depth)
            elif ends_in is not None:  # its members count for the outer group: they have no step of their own
                return self._lay_nested(step, source, ends_in, depth)
            else:
                source = self._lay_group(step, source, depth)
        return _ONE

    def _lay_branches(self, step: CallStep, source: Parent, parent: int, depth: int) -> None:
        """Add the branches of a job in the order of their priority, which is then the order of their ids."""
        job = self.jobs[parent]
        for number, branch_set in enumerate(sorted(step.branches, key=attrgetter("priority"))):
            before: tuple[Predicate, ...] = ()
            for condition, flow, description in branch_set.cases:
                follows, child = _FOLLOWS[condition.kind], len(self.jobs)
                self.lay(flow, source._replace(follows=follows), follows, None, depth + 1)
                choice = number if branch_set.first_only else None
                job.branches.append(LaidBranch(child, condition.kind, condition.predicate, choice, description))
                if follows is Follows.DECIDED:
                    about = OF_OUTCOME if condition.kind == "custom" else OF_VALUE
                    self.jobs[child].guard = LaidGuard(about, condition.predicate, before, description)
                if condition.predicate is not None:
                    before = (*before, condition.predicate)
        if len(job.branches) > MAX_BRANCHES:
            raise InvalidOptionError(
                f"{job.call.target} has {len(job.branches)} branches, more than {MAX_BRANCHES}; enqueue the others "
                "from the body of a branch"
            )

    def _add(self, call: Call[Any], source: Parent | None, counts_for: LaidGroup | None) -> int:
        if id(call) in self._seen:
            raise InvalidOptionError(
                f"the call of {call.target} is in two places of one flow; bind it again for the second place"
            )
        if len(self.jobs) >= MAX_FLOW_ROWS:
            raise InvalidOptionError(f"a flow has at most {MAX_FLOW_ROWS:,} jobs; enqueue several flows")
        self._seen.add(id(call))
        if source is not None and source.job is not None:
            self.jobs[source.job].leads.add(source.follows)
        self.jobs.append(LaidJob(call, source, counts_for))
        return len(self.jobs) - 1

    def _lay_nested(self, step: GroupStep, source: Parent | None, counts_for: LaidGroup, depth: int) -> list[Any]:
        if step.on_failure:
            raise InvalidOptionError(
                "a group that is a member of another group, without a step behind it, cannot have then_on_failure: its "
                "members count for the outer group; add a step behind it with then(), or move then_on_failure outwards"
            )
        return self._members(step, source, counts_for, depth)

    def _lay_group(self, step: GroupStep, source: Parent | None, depth: int) -> Parent:
        made = LaidGroup()
        shape = self._members(step, source, made, depth)
        made.number, self.groups = self.groups, self.groups + 1
        group = Parent(None, made, shape if any(isinstance(part, list) for part in shape) else None)
        for flow in step.on_failure:
            self.lay(flow, group._replace(follows=Follows.FAILURE), Follows.FAILURE, None, depth + 1)
        return group

    def _members(self, step: GroupStep, source: Parent | None, counts_for: LaidGroup, depth: int) -> list[Any]:
        shapes: list[Any] = []
        for member in step.members:
            shape = self.lay(member, source, Follows.THEN if source is None else source.follows, counts_for, depth + 1)
            if shape == _ONE and shapes and isinstance(shapes[-1], int):
                shapes[-1] += _ONE
            else:
                shapes.append(shape)
        return shapes


def answering_call(flow: Flow[Any]) -> Call[Any]:
    """Return the call whose handle is that of the flow: the first one, or the first behind a group."""
    following: Flow[Any] | None = flow
    while following is not None:
        for step in following.steps:
            if isinstance(step, CallStep):
                return step.call
        groups = [step for step in following.steps if isinstance(step, GroupStep) and step.on_failure]
        following = groups[0].on_failure[0] if groups else None
    raise InvalidOptionError(
        "a group without a step behind it has no result to wait for; add one with then(), then_always() or "
        "then_on_failure(), or store its members with app.enqueue_many([…])"
    )
