"""What is left out of the picture of a large flow: most members of large groups, the middle of long lines. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Final
from uuid import UUID

from windlass.domain.flow_outline import Fold, OutlineBranch, OutlineLine, OutlineStep, jobs_of
from windlass.domain.states import JobStatus

_REMARKABLE: Final = (JobStatus.FAILED, JobStatus.RUNNING, JobStatus.PAUSED, JobStatus.WAITING)
"""States in which a job is shown rather than others, in this order."""


def folded(line: OutlineLine, most_members: int, most_steps: int, focus: UUID | None = None) -> OutlineLine:
    """Return a line in which no group shows more members than so many, and no line more steps.

    Those that failed or run are shown rather than others, and the job `focus` in any case.
    """
    steps = [_step(step, most_members, most_steps, focus) for step in line]
    if len(steps) <= most_steps:
        return steps
    shown = _chosen([[step] for step in steps], most_steps - 1, focus, ends=True)
    kept: OutlineLine = []
    hidden: OutlineLine = []
    for number, step in enumerate(steps):
        if number not in shown:
            hidden.append(step)
            continue
        if hidden:
            kept.append(OutlineStep(_fold([[one] for one in hidden]), kind=hidden[0].kind))
            hidden = []
        kept.append(step)
    return kept


def _step(step: OutlineStep, most_members: int, most_steps: int, focus: UUID | None) -> OutlineStep:
    members, fold = step.members, None
    if len(members) > most_members:
        shown = _chosen(members, most_members, focus)
        fold = _fold([member for number, member in enumerate(members) if number not in shown])
        members = [member for number, member in enumerate(members) if number in shown]
    return replace(
        step,
        members=[folded(member, most_members, most_steps, focus) for member in members],
        folded=fold,
        branches=[
            OutlineBranch(branch.kind, folded(branch.line, most_members, most_steps, focus), branch.label)
            for branch in step.branches
        ],
    )


def _chosen(lines: list[OutlineLine], most: int, focus: UUID | None, *, ends: bool = False) -> set[int]:
    """Return the numbers of the lines to show; with `ends`, the first and the last one are among them."""
    ranked = sorted(range(len(lines)), key=lambda number: _rank(lines[number], focus))
    if ends:
        outer = [0, len(lines) - 1]
        ranked = [*outer, *(number for number in ranked if number not in outer)]
    return set(ranked[:most])


def _rank(line: Iterable[OutlineStep], focus: UUID | None) -> int:
    best = len(_REMARKABLE)
    for job in jobs_of(line):
        if job.id == focus:
            return -1
        if job.status in _REMARKABLE:
            best = min(best, _REMARKABLE.index(job.status))
    return best


def _fold(lines: list[OutlineLine]) -> Fold:
    counted: Counter[JobStatus] = Counter()
    for line in lines:
        counted.update(job.status for job in jobs_of(line))
        for fold in _inner(line):
            counted.update(fold.jobs)
    return Fold(len(lines), {status: counted[status] for status in JobStatus if counted[status]})


def _inner(line: Iterable[OutlineStep]) -> Iterable[Fold]:
    """Yield what was folded inside of a line before."""
    for step in line:
        yield from (one for one in (step.content, step.folded) if isinstance(one, Fold))
        for inner in (*step.members, *(branch.line for branch in step.branches)):
            yield from _inner(inner)
