"""Plans: store operations as generators.

A plan yields `Step`s (a named statement and its parameters) and receives each result. One body thus serves sync
callers, async callers and a caller's own transaction, and two plans can commit together with `yield from`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")

SCRIPT = "script"
"""Name of the only step that is not a named statement: the text of a migration file."""


class Step(NamedTuple):
    """One statement to run. With `rows` it runs once per row and returns the list of counts."""

    name: str
    params: Mapping[str, Any] = {}
    rows: Sequence[Mapping[str, Any]] | None = None
    alone: bool = False
    """A promise: the plan needs no transaction around this statement, because it is its only one."""
    autocommit: bool = False
    """A promise: the plan only reads, and needs no transaction, because its statements are independent."""
    final: bool = False
    """A promise: no step follows this one, so that the commit may be sent with it."""
    literals: Mapping[str, int] | None = None
    """Whole numbers written into the statement's text, for the planner (`LIMIT`)."""
    then: Step | None = None
    """A step to run right after it, whatever it returns: both are sent in one message, and answered together."""


Plan = Generator[Step, Any, T]


class RestartPlanError(Exception):
    """Raised inside a plan that lost a race: roll back and run it again from the start."""


class BrokenPromiseError(Exception):
    """Raised when a plan yields a step that an earlier one has ruled out (`alone`, `autocommit`)."""


def check_promises(first: Step, step: Step, following: Step) -> None:
    """Raise `BrokenPromiseError` if a plan that began with `first` may not yield `following` after `step`."""
    if step.alone:
        raise BrokenPromiseError(f"the step {following.name} comes after {step.name}, which was to be the only one")
    if first.autocommit and not following.autocommit:
        raise BrokenPromiseError(f"the step {following.name} needs a transaction, and {first.name} began without one")


def drive(plan: Plan[T], first: Step, execute: Callable[[Step], Any]) -> T:
    """Run a plan whose first step was already taken, to its end."""
    step = first
    try:
        while True:
            answer = execute(step)
            following = plan.send(answer if step.then is None else (answer, execute(step.then)))
            check_promises(first, step, following)
            step = following
    except StopIteration as stop:
        result: T = stop.value
        return result


def along(step: Step, plan: Plan[T]) -> Plan[tuple[Any, T]]:
    """Run a step together with the first step of a plan, which is sent before the step is answered."""
    answer, following = yield step._replace(then=next(plan))
    try:
        while True:
            following = yield plan.send(following)
    except StopIteration as stop:
        return answer, stop.value
