"""Branches as values: conditions on the outcome of a job, and the verbs by which calls and flows get them."""

from abc import abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

from windlass.domain.branches import BranchKind
from windlass.domain.job_result import JobResult
from windlass.errors import InvalidOptionError
from windlass.submission.error_text import short

if TYPE_CHECKING:
    from windlass.submission.call import Flow, FlowStep

R_co = TypeVar("R_co", covariant=True)
V_co = TypeVar("V_co", covariant=True)
"""What the last job returns, as far as known."""

Answer = bool | Awaitable[bool]
"""What a predicate returns."""
MAX_DESCRIPTION: Final = 200


@dataclass(frozen=True, slots=True)
class Condition:
    """When a branch fires; made by `success`, `failure`, `result` and `custom`.

    ```python
    assess.bind(7).branch(Condition.result(is_low_risk), approve.bind(7), "low risk")
    ```

    Predicates are importable functions of one argument, plain or `async`. They run on the worker that ends the job,
    outside of any transaction.
    """

    kind: BranchKind
    predicate: Callable[[Any], Any] | None = None

    @staticmethod
    def success() -> "Condition":
        """Return the condition that the job has succeeded."""
        return Condition("success")

    @staticmethod
    def failure() -> "Condition":
        """Return the condition that the job has failed for good."""
        return Condition("failure")

    @staticmethod
    def result(predicate: Callable[[Any], Answer]) -> "Condition":
        """Return the condition that the job has succeeded and the predicate holds for what it returned."""
        return Condition("result", _function(predicate, "the value that the job returned"))

    @staticmethod
    def custom(predicate: Callable[[JobResult], Answer]) -> "Condition":
        """Return the condition that the predicate holds for the `JobResult`, of a success or of a failure."""
        return Condition("custom", _function(predicate, "the JobResult"))


class BranchCase(NamedTuple):
    """A branch, or one case of a choice."""

    condition: Condition
    """Without a predicate in a choice: what remains."""
    step: Any
    description: str = ""


class BranchSet(NamedTuple):
    """Branches that are judged together: one, or the cases of a choice."""

    cases: tuple[BranchCase, ...]
    priority: int = 0
    first_only: bool = False


class BranchVerbs(Generic[R_co, V_co]):
    """The verbs for branches, which hang on the last job of a call or flow.

    All that match fire, in the order of their `priority` (lower first), then as written; the others are CANCELED
    (`not_chosen`). The plain chain goes on after success whatever the branches do.
    """

    __slots__ = ()

    @abstractmethod
    def _branched(self, branch_set: BranchSet) -> "Flow[R_co]": ...

    def then_on_success(self, step: "FlowStep", *, description: str = "", priority: int = 0) -> "Flow[R_co]":
        """Return the flow with a branch that runs if the last job succeeds. `RESULT` is what it returned."""
        return self.branch(Condition.success(), step, description, priority)

    def then_on_failure(self, step: "FlowStep", *, description: str = "", priority: int = 0) -> "Flow[R_co]":
        """Return the flow with a branch that runs if the last job fails for good. `RESULT` is the `JobResult`."""
        return self.branch(Condition.failure(), step, description, priority)

    def when(
        self,
        predicate: Callable[[JobResult], Answer],
        step: "FlowStep",
        *,
        description: str = "",
        priority: int = 0,
    ) -> "Flow[R_co]":
        """Return the flow with a branch that runs if the predicate holds for the `JobResult` of the last job.

        It is called after success and after failure, not after a cancel. `RESULT` is the `JobResult`.
        """
        return self.branch(Condition.custom(predicate), step, description, priority)

    def when_result(
        self,
        predicate: Callable[[V_co], Answer],
        step: "FlowStep",
        *,
        description: str = "",
        priority: int = 0,
    ) -> "Flow[R_co]":
        """Return the flow with a branch that runs if the last job succeeds and the predicate holds for its result.

        ```python
        assess.bind(7).when_result(is_low_risk, approve.bind(7)).when_result(is_high_risk, review.bind(7)).enqueue()
        ```
        """
        return self.branch(Condition.result(predicate), step, description, priority)

    def branch(self, condition: Condition, step: "FlowStep", description: str = "", priority: int = 0) -> "Flow[R_co]":
        """Return the flow with a branch that runs if the condition holds for the outcome of the last job."""
        if not isinstance(condition, Condition):
            raise InvalidOptionError(
                f"branch takes a Condition, e.g. Condition.result(is_low_risk), got {short(condition)}"
            )
        case = BranchCase(condition, step, _description(description))
        return self._branched(BranchSet((case,), _priority(priority)))

    def choose(
        self,
        *cases: "tuple[Callable[[V_co], Answer], FlowStep]",
        otherwise: "FlowStep | None" = None,
        priority: int = 0,
    ) -> "Flow[R_co]":
        """Return the flow with branches of which one runs if the last job succeeds: the first whose predicate holds.

        ```python
        classify.bind(9).choose((is_urgent, page.bind(9)), (is_spam, drop.bind(9)), otherwise=file.bind(9)).enqueue()
        ```

        Without a match it is `otherwise`. After a failure none of them runs.
        """
        if not cases:
            raise InvalidOptionError(
                "choose needs at least one pair of predicate and call, got none; write choose((is_urgent, "
                "page.bind(9)), otherwise=…), or then_on_success(…) if there is nothing to choose"
            )
        given: tuple[object, ...] = cases
        for case in given:
            if not isinstance(case, tuple) or len(case) != len(("predicate", "call")):
                raise InvalidOptionError(
                    f"choose takes pairs of predicate and call, e.g. (is_urgent, page.bind(9)), got {short(case)}"
                )
        made = [BranchCase(Condition.result(predicate), step) for predicate, step in cases]
        if otherwise is not None:
            made.append(BranchCase(Condition("result"), otherwise))
        return self._branched(BranchSet(tuple(made), _priority(priority), first_only=True))


def _function(predicate: object, argument: str) -> Callable[[Any], Any]:
    if not callable(predicate):
        raise InvalidOptionError(
            f"a predicate is a function of one argument, {argument}, got {short(predicate)}; pass the function itself"
        )
    return predicate


def _description(text: object) -> str:
    if not isinstance(text, str) or len(text) > MAX_DESCRIPTION or not (text.isprintable()):
        raise InvalidOptionError(
            f"the description of a branch is a text of at most {MAX_DESCRIPTION} printable characters, "
            f"got {short(text)}"
        )
    return text


def _priority(priority: object) -> int:
    if isinstance(priority, bool) or not isinstance(priority, int):
        raise InvalidOptionError(
            f"the priority of a branch is a whole number, lower first, got {short(priority)}; the priority of its job "
            "is an option: call.using(priority=…)"
        )
    return priority
