"""Why an execution is not running: a pure function of the execution, its job, and the jobs of its parts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple

from windlass.domain.execution import DEAD, ENDED, ExecutionStatus
from windlass.domain.explanation import Explanation

WAITS_UNTIL_DUE: Final = frozenset({"not_due", "waiting_for_retry"})


class FailedAttempt(NamedTuple):
    """An attempt that is to be made again."""

    step: str
    number: int
    error: str | None
    item: str | None = None
    """Position of the item; None: the step of a single value."""
    due_at: datetime | None = None


class WaitingExecution(NamedTuple):
    """What matters of an execution here."""

    id: str
    pipeline: str
    """Name of the pipeline, with its version."""
    definition_hash: str
    known_hash: str | None
    """Hash of the same version as it is declared here; None: it is not declared here."""
    status: ExecutionStatus
    step: str
    """The step that runs or comes next."""
    attempt: int
    updated_at: datetime
    error: str | None = None
    items_left: int = 0
    parts_left: int = 0
    failed: FailedAttempt | None = None
    outside: int = 0
    """Number of items that wait for answers from outside."""
    outside_until: datetime | None = None
    """The first deadline of what waits outside."""


def explain_execution(
    execution: WaitingExecution, main: Explanation | None, parts: Sequence[Explanation]
) -> Explanation:
    """Return the first reason why an execution does not run; `main` explains its job, `parts` those of its parts."""
    if execution.status in ENDED or main is None:
        return _ended(execution)
    if execution.status is ExecutionStatus.PAUSED:
        runs = any(one.code == "running" for one in (main, *parts))
        still = "; what runs goes on until its next boundary" if runs else ""
        return Explanation("paused", f"it is paused at step {execution.step}{still}; resume it to continue")
    if execution.status is ExecutionStatus.WAITING_EXTERNAL:
        return _waits_outside(execution)
    running = [one for one in parts if one.code == "running"]
    if main.code == "running":
        return Explanation("running", f"{main.message}, in step {execution.step}, attempt {execution.attempt}")
    if running:
        return Explanation("running", f"it runs {_items(execution)}, of which {len(running):,} run")
    if _is_stranded(execution) or any(one.code == "target_unknown" for one in (main, *parts)):
        return _stranded(execution)
    if execution.parts_left and main.code == "not_released":
        return _waits_for_items(execution, parts)
    if main.code in WAITS_UNTIL_DUE and execution.failed is not None:
        return Explanation("waiting_for_retry", _retry(execution.failed), main.until)
    return main


def _ended(execution: WaitingExecution) -> Explanation:
    code, when = execution.status.value.lower(), f"{execution.updated_at:%Y-%m-%d %H:%M:%S} UTC"
    if execution.status in DEAD:
        why = f": {execution.error}" if execution.error else ""
        again = f"re-drive it to start it over: windlass execution redrive {execution.id}"
        return Explanation(code, f"it failed for good at {when} in step {execution.step}{why}; {again}")
    return Explanation(code, f"it has ended: {code} at {when}")


def _waits_outside(execution: WaitingExecution) -> Explanation:
    what = f"an answer from outside to step {execution.step}"
    if execution.outside:
        items = f"{execution.outside:,} item{'' if execution.outside == 1 else 's'}"
        what = f"answers from outside to step {execution.step}, for {items}"
    shown = "windlass execution pending shows what is asked, and the deadline"
    return Explanation("waiting_external", f"it waits for {what}; {shown}", execution.outside_until)


def _is_stranded(execution: WaitingExecution) -> bool:
    return execution.known_hash not in (None, execution.definition_hash)


def _stranded(execution: WaitingExecution) -> Explanation:
    digest, known, other = execution.definition_hash[:12], execution.known_hash, ""
    if known is not None and _is_stranded(execution):
        other = f", which has other steps here (definition {known[:12]})"
    return Explanation(
        "stranded",
        f"it was begun with definition {digest} of pipeline {execution.pipeline}{other}: it waits for a worker that "
        f"has that very definition. Start one, or move it: windlass execution redrive {execution.id} --to-version …",
    )


def _items(execution: WaitingExecution) -> str:
    items = f"{execution.items_left:,} item{'' if execution.items_left == 1 else 's'} of step {execution.step}"
    return f"{items} in {execution.parts_left:,} part{'' if execution.parts_left == 1 else 's'}"


def _waits_for_items(execution: WaitingExecution, parts: Sequence[Explanation]) -> Explanation:
    waits = f"it waits for {_items(execution)}"
    first = next((one for one in parts if one.code not in WAITS_UNTIL_DUE), None)
    if first is None and parts:
        until = min((one.until for one in parts if one.until is not None), default=None)
        failed = execution.failed
        due = "none of which is due yet" if failed is None or failed.item is None else f"of which {_retry(failed)}"
        return Explanation("waiting_for_retry", f"{waits}, {due}", until)
    if first is None or first.code == "ready":
        return Explanation(
            "waiting_for_items", f"{waits}; {first.message if first else 'they get jobs at its next turn'}"
        )
    return Explanation(first.code, f"{waits}: {first.message}", first.until)


def _retry(failed: FailedAttempt) -> str:
    what = "it" if failed.item is None else f"item {failed.item}"
    why = f": {failed.error}" if failed.error else ""
    return f"{what} waits for attempt {failed.number + 1} of step {failed.step}, attempt {failed.number} failed{why}"
