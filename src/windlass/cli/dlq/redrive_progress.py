"""The live line of a re-drive: how many were re-driven, what became of them, and how close they are to failing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from windlass.cli.output import console, drawn, write_line
from windlass.domain.dead_letter import Redrive


def counts(so_far: Redrive) -> str:
    """Return what became of those that were re-driven, as text."""
    parts = [f"{so_far.succeeded:,} succeeded", f"{so_far.failed_again:,} failed again"]
    if so_far.unfinished:
        parts.append(f"{so_far.unfinished:,} not ended")
    if so_far.suppressed:
        parts.append(f"{so_far.suppressed:,} suppressed")
    if so_far.saturation is not None:
        parts.append(f"saturation {so_far.saturation:.0%}")
    return ", ".join(parts)


@contextmanager
def live_line(total: int) -> Iterator[Callable[[Redrive], object]]:
    """Show one line that changes at a terminal, a line per batch elsewhere."""
    if not drawn():
        yield lambda so_far: write_line(f"{so_far.redriven} of {total}: {counts(so_far)}")
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    texts = (TextColumn("re-driving"), TextColumn("{task.fields[counts]}"))
    columns = (texts[0], BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), texts[1])
    with Progress(*columns, console=console()) as progress:
        task = progress.add_task("", total=total, counts="")
        yield lambda so_far: progress.update(task, completed=so_far.selected, counts=counts(so_far))
