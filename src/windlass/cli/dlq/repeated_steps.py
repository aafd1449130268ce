"""The steps of dead executions as lines: the one that failed, and those that a re-drive calls."""

from __future__ import annotations

from collections.abc import Iterator

from windlass.app import Windlass
from windlass.client.rewinds import RepeatedStep
from windlass.domain.control_characters import visible
from windlass.domain.dead_letter import DeadLetter
from windlass.errors import InvalidOptionError
from windlass.execution_errors import ExecutionNotFoundError


def failed_step(app: Windlass, letter: DeadLetter) -> str:
    """Return the step and the item at which an execution failed; the step's name, if its pipeline is declared here."""
    if letter.step is None:
        return ""
    try:
        steps = app.executions.plan_redrive(letter.job_id).steps
    except (ExecutionNotFoundError, InvalidOptionError):
        steps = ()
    name = next((f" ({visible(step.name)})" for step in steps if step.index == letter.step), "")
    item = "" if letter.item is None else f", item {letter.item}"
    return f"{letter.step}{name}{item}"


def repeated_steps(app: Windlass, execution_id: str) -> Iterator[str]:
    """Yield a line for each step that a re-drive calls: its index, name, effect key and tries so far.

    A job has none. Where the steps are not known, the line says why.
    """
    try:
        plan = app.executions.plan_redrive(execution_id)
    except ExecutionNotFoundError:
        return
    except InvalidOptionError as error:
        yield f"{execution_id}\t{error}"
        return
    for step in plan.steps:
        yield f"{execution_id}\tstep {step.index} {visible(step.name)}\t{step.effect_key}\t{_tries(step)}"


def _tries(step: RepeatedStep) -> str:
    return f"{step.attempts} {'try' if step.attempts == 1 else 'tries'} so far"
