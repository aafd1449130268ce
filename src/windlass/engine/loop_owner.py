"""The job that a task on the loop belongs to, for warnings about a blocked loop."""

from __future__ import annotations

import asyncio
from typing import Any

from windlass.context import JobContext, current_context
from windlass.engine.slots import Slots
from windlass.runtime.loop_watch import Culprit, LoopWatch


def watch_loop(threshold: float, slots: Slots) -> LoopWatch:
    """Return a watch of the running loop, on which the jobs of these slots run."""
    loop = asyncio.get_running_loop()
    return LoopWatch(loop, threshold, lambda: slots.running > 0, lambda task: owner_of(task, slots))


def owner_of(task: asyncio.Task[Any], slots: Slots) -> Culprit | None:
    """Return the job whose body runs in a task, or started it. From any thread, while the loop is blocked."""
    for attempt in slots.running_attempts():
        if attempt.task is task:
            return Culprit(attempt.claim.target, attempt.claim.job_id)
    context = _job_context(task)
    return None if context is None else Culprit(context.target, str(context.job_id))


def _job_context(task: asyncio.Task[Any]) -> JobContext | None:
    """Return the context of a task's job; before Python 3.12 a task does not expose its context."""
    get_context = getattr(task, "get_context", None)
    return None if get_context is None else get_context().get(current_context)
