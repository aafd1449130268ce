"""Calls and flows as values, checked but not stored yet.

A call is a function's stored name with arguments and options. A flow is made of calls: `a.then(b)`, `group(a, b)`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, NamedTuple, Protocol, TypeVar, Unpack, overload
from uuid import UUID

from windlass.domain.dependencies import Follows
from windlass.domain.job_result import RESULT
from windlass.domain.options import JobOptions, JobOptionsDict
from windlass.domain.signal import SignalWait, signal_wait
from windlass.errors import InvalidOptionError
from windlass.runtime.verbs import Verb, adrive, drive
from windlass.submission.branch_verbs import BranchSet, BranchVerbs
from windlass.submission.error_text import short
from windlass.submission.handle import JobHandle
from windlass.submission.signature import CallSpec

R_co = TypeVar("R_co", covariant=True)
S = TypeVar("S")


class Enqueuer(Protocol):
    """Stores calls and returns handles on jobs: the `Submitter` of an application."""

    def submit(self, calls: "Sequence[Call[Any] | Flow[Any]]") -> Verb[list[JobHandle[Any]]]:
        """Store calls and flows, all or none, and return their handles in order."""
        ...

    def handle(self, job_id: UUID | str, spec: CallSpec | None = None) -> JobHandle[Any]:
        """Return a handle on a job stored earlier, whose result is read by the return annotation of `spec`."""
        ...


@dataclass(frozen=True, slots=True)
class Call(BranchVerbs[R_co, R_co]):
    """A call to be stored; `R_co` is what its job returns.

    ```python
    call = charge.bind(42).using(priority=Priority.HIGH)
    handle = call.enqueue()
    ```
    """

    target: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    options: JobOptions
    spec: CallSpec = field(repr=False, compare=False)
    submitter: Enqueuer = field(repr=False, compare=False)
    circuit: str | None = None
    """The `@circuit_protected` mark of the target."""
    wait: SignalWait | None = None
    """The signal that its job waits for before it runs."""

    def using(self, **options: Unpack[JobOptionsDict]) -> "Call[R_co]":
        """Return the same call with these options replacing its own."""
        return replace(self, options=self.options.merged(JobOptions.make(**options)))

    def await_signal(self, key: str, timeout: float | timedelta | None = None) -> "Call[R_co]":
        """Return the call whose job is WAITING until `app.signal(key)`, and fails if none comes in `timeout` seconds.

        ```python
        ship.bind(7).await_signal("order:7:approved", timeout=86_400).enqueue()
        ```
        """
        return replace(self, wait=signal_wait(key, timeout))

    def enqueue(self) -> JobHandle[R_co]:
        """Store the call as a job."""
        return drive(self.submitter.submit((self,)))[0]

    async def aenqueue(self) -> JobHandle[R_co]:
        """Async twin of `enqueue`."""
        return (await adrive(self.submitter.submit((self,))))[0]

    def then(self, step: "FlowStep") -> "Flow[R_co]":
        """Return the flow in which `step` runs once this has succeeded; see `Flow.then`."""
        return _flow_of(self).then(step)

    def _branched(self, branch_set: BranchSet) -> "Flow[R_co]":
        return _with_branches(_flow_of(self), branch_set)


class Bindable(Protocol[R_co]):
    """A job whose arguments are not bound yet: as a step of a flow it takes the result of the step before it."""

    def bind(self, *args: Any, **kwargs: Any) -> Call[R_co]:
        """Return a call with these arguments."""
        ...


class CallStep(NamedTuple):
    """A step of a flow that is one job."""

    call: Call[Any]
    follows: Follows = Follows.THEN
    """How it follows the step before it."""
    branches: tuple[BranchSet, ...] = ()
    """What follows its outcome beside the next step."""


class GroupStep(NamedTuple):
    """A step of a flow whose members run side by side."""

    members: "tuple[Flow[Any], ...]"
    follows: Follows = Follows.THEN
    """How its members follow the step before it."""
    on_failure: "tuple[Flow[Any], ...]" = ()
    """What runs once all members have ended and not all have succeeded."""


@dataclass(frozen=True, slots=True)
class Flow(BranchVerbs[R_co, Any]):
    """Linked jobs, stored all at once; `R_co` is the result of the job whose handle `enqueue` returns.

    ```python
    validate.bind(7).then(charge.bind(7)).then(ship.bind(RESULT)).enqueue()
    ```

    A flow is a value: every step can be continued in several ways.
    """

    steps: tuple[CallStep | GroupStep, ...]

    def then(self, step: "FlowStep") -> "Flow[R_co]":
        """Return the flow in which `step` runs once the last step has succeeded.

        `step` is a call, another flow, a group, or a job: `then(ship)` is `then(ship.bind(RESULT))`. If a step fails
        for good or is canceled, those behind it are CANCELED.
        """
        return Flow((*self.steps, *_steps(step, Follows.THEN)))

    def then_always(self, step: "FlowStep") -> "Flow[R_co]":
        """Return the flow in which `step` runs once all members of the group before it have ended, however.

        `RESULT` is the list of their `JobResult`s.
        """
        self._last_group("then_always")
        return Flow((*self.steps, *_steps(step, Follows.ALWAYS)))

    def then_on_failure(self, step: "FlowStep", *, description: str = "", priority: int = 0) -> "Flow[R_co]":
        """Return the flow with a step that runs if the last job fails for good, or not all members of the last group.

        `RESULT` is the `JobResult`, or the list of those of the members. The flow goes on as before.
        """
        last = self.steps[-1]
        if isinstance(last, CallStep):
            return BranchVerbs.then_on_failure(self, step, description=description, priority=priority)
        if description or priority:
            raise InvalidOptionError(
                "then_on_failure behind a group has neither description nor priority; leave them out"
            )
        added: Flow[Any] = Flow(_steps(step, Follows.FAILURE))
        return Flow((*self.steps[:-1], last._replace(on_failure=(*last.on_failure, added))))

    def _branched(self, branch_set: BranchSet) -> "Flow[R_co]":
        return _with_branches(self, branch_set)

    def _last_group(self, verb: str) -> GroupStep:
        last = self.steps[-1]
        if not isinstance(last, GroupStep):
            raise InvalidOptionError(
                f"{verb} stands behind a group, and the last step here is {last.call.target}; write "
                f"group(…).{verb}(…), or when() for what follows any outcome of a job"
            )
        return last

    def enqueue(self) -> JobHandle[R_co]:
        """Store the flow; return the handle of its first job or, if it begins with a group, of the one behind it."""
        return drive(self.submitter.submit((self,)))[0]

    async def aenqueue(self) -> JobHandle[R_co]:
        """Async twin of `enqueue`."""
        return (await adrive(self.submitter.submit((self,))))[0]

    @property
    def submitter(self) -> Enqueuer:
        """What stores it: the submitter of the application of its first job."""
        return next(iter(calls_of(self))).submitter


@dataclass(frozen=True, slots=True)
class Group:
    """Calls or flows that run side by side, as a step of a flow; made by `group`."""

    step: GroupStep

    @overload
    def then(self, step: "Call[S] | Flow[S] | Bindable[S]") -> "Flow[S]": ...
    @overload
    def then(self, step: "Group") -> "Flow[Any]": ...
    def then(self, step: "FlowStep") -> "Flow[Any]":
        """Return the flow in which `step` runs once all members have succeeded.

        `RESULT` is the list of their results, in order. A member that fails or is canceled cancels the step.
        """
        return self.flow.then(step)

    @overload
    def then_always(self, step: "Call[S] | Flow[S] | Bindable[S]") -> "Flow[S]": ...
    @overload
    def then_always(self, step: "Group") -> "Flow[Any]": ...
    def then_always(self, step: "FlowStep") -> "Flow[Any]":
        """Return the flow in which `step` runs once all members have ended; see `Flow.then_always`."""
        return self.flow.then_always(step)

    def then_on_failure(self, step: "FlowStep") -> "Group":
        """Return the group with a step for the case that not all members succeed; see `Flow.then_on_failure`."""
        (last,) = self.flow.then_on_failure(step).steps
        assert isinstance(last, GroupStep)
        return Group(last)

    def enqueue(self) -> JobHandle[Any]:
        """Store the flow, which must have a step behind the group; return that step's handle."""
        return self.flow.enqueue()

    async def aenqueue(self) -> JobHandle[Any]:
        """Async twin of `enqueue`."""
        return await self.flow.aenqueue()

    @property
    def flow(self) -> Flow[Any]:
        """The group as a flow of one step."""
        return Flow((self.step,))


FlowStep = Call[Any] | Flow[Any] | Group | Bindable[Any]
"""What can be a step of a flow."""


def group(*members: FlowStep) -> Group:
    """Return calls, flows or groups that run side by side, to be followed by a step that gets their results.

    ```python
    group(resize.bind("a.png"), resize.bind("b.png")).then(publish.bind(RESULT)).enqueue()
    ```
    """
    if not members:
        raise InvalidOptionError("a group needs at least one member, got none; leave the group out, or add a call")
    return Group(GroupStep(tuple(_flow_of(member) for member in members)))


def calls_of(flow: Flow[Any]) -> Iterable[Call[Any]]:
    """Yield every call of a flow, in no particular order."""
    waiting: list[Flow[Any]] = [flow]
    while waiting:
        for step in waiting.pop().steps:
            if isinstance(step, CallStep):
                yield step.call
                waiting += (_flow_of(case.step) for branch_set in step.branches for case in branch_set.cases)
            else:
                waiting += (*step.members, *step.on_failure)


def _flow_of(step: FlowStep) -> Flow[Any]:
    return Flow(_steps(step, Follows.THEN))


def _with_branches(flow: Flow[Any], branch_set: BranchSet) -> Flow[Any]:
    """Return a flow with branches of its last step."""
    last = flow.steps[-1]
    if isinstance(last, GroupStep):
        raise InvalidOptionError(
            "a branch follows the outcome of one job, and the last step here is a group; add a step behind it with "
            "then(), or use then_on_failure() or then_always() of the group"
        )
    flows = [_flow_of(case.step) for case in branch_set.cases]
    if any(isinstance(one.steps[0], GroupStep) for one in flows):
        raise InvalidOptionError(
            "a branch begins with one job, got a group; begin it with a job: first.bind(…).then(group(…))"
        )
    cases = (case._replace(step=one) for case, one in zip(branch_set.cases, flows, strict=True))
    return Flow((*flow.steps[:-1], last._replace(branches=(*last.branches, branch_set._replace(cases=tuple(cases))))))


def _steps(step: FlowStep, follows: Follows) -> tuple[CallStep | GroupStep, ...]:
    """Return a step as the steps of a flow, the first of which follows the one before it in this way."""
    if isinstance(step, Call):
        return (CallStep(step, follows),)
    if isinstance(step, Group):
        return (step.step._replace(follows=follows),)
    if isinstance(step, Flow):
        return (step.steps[0]._replace(follows=follows), *step.steps[1:])
    bind = getattr(step, "bind", None)
    if bind is None:
        raise InvalidOptionError(
            f"a step of a flow is a job, a call, a flow or a group, got {short(step)}; bind its arguments: job.bind(…)"
        )
    return (CallStep(bind(RESULT), follows),)
