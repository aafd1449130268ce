"""How far an execution has come: its steps, the items of its stages, and the parts that work them off."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class StageProgress:
    """The items of one stage: what an expansion or a transformation has made."""

    stage: int
    step: str
    """The step that has made them."""
    ready: int = 0
    """Items that run, or are next."""
    retrying: int = 0
    """Items that wait for their next attempt."""
    waiting: int = 0
    """Items that wait for an answer from outside."""
    done: int = 0
    rejected: int = 0
    failed: int = 0

    @property
    def total(self) -> int:
        """All of them, without those that were expanded into others."""
        return self.ready + self.retrying + self.waiting + self.done + self.rejected + self.failed

    @property
    def percent(self) -> float:
        """The share that has ended."""
        return 100.0 * (self.done + self.rejected + self.failed) / self.total if self.total else 100.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PartProgress:
    """A range of items that one job works off."""

    job_id: UUID
    stage: int
    step: str
    """The first step that its items run through."""
    first: str
    """Position of its first item, like `3.17`."""
    last: str
    """Position of its last item; empty: up to the end of the stage."""
    status: str
    due_at: datetime | None
    node: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionProgress:
    """How far an execution has come, from `app.executions.progress(id)`."""

    steps: tuple[str, ...]
    """Names of the steps of its definition; empty if that is known neither here nor in the store."""
    stages: tuple[StageProgress, ...]
    parts: tuple[PartProgress, ...]
    """Parts that have a job."""
    parts_waiting: int
    """Parts that get a job when another one has ended."""


def step_name(steps: tuple[str, ...], index: int) -> str:
    """Return the name of a step; its number if the definition is not known."""
    return steps[index] if 0 <= index < len(steps) else f"step {index}"
