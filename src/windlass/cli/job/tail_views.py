"""How a followed job is shown: drawn with a live bar, as lines for pipes, as objects for programs."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

from windlass.cli import phrases
from windlass.cli.output import console, drawn, write_json, write_line
from windlass.cli.tables import STATUS_STYLES
from windlass.domain.control_characters import indented, visible
from windlass.domain.job import Job
from windlass.domain.progress import LogLine
from windlass.domain.states import TERMINAL, JobStatus

if TYPE_CHECKING:
    from rich.progress import Progress as ProgressBar

LEVEL_STYLES: Final = {"DEBUG": "dim", "WARNING": "yellow", "ERROR": "red", "CRITICAL": "bold red"}


class View(Protocol):
    """Base class of views of a job."""

    def __enter__(self) -> Self:
        """Begin."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the live display."""

    def line(self, line: LogLine) -> None:
        """Show a log line."""

    def state(self, job: Job) -> None:
        """Show the job's current state."""

    def over(self, job: Job) -> None:
        """Show the outcome, after the end of the view."""


def view() -> View:
    """Return the view for standard output."""
    return DrawnView() if drawn() else PlainView()


class PlainView:
    """Lines of five columns, separated by tabs: time in UTC, attempt, level, logger, text."""

    def __init__(self) -> None:
        self._shown: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def line(self, line: LogLine) -> None:
        """Write a log line; further lines of a traceback are indented."""
        text = indented(line.text, by="\t")
        write_line(f"{phrases.utc(line.at)}\t{line.attempt}\t{line.level}\t{line.logger}\t{text}")

    def state(self, job: Job) -> None:
        """Write its progress if that has changed."""
        progress = job.progress
        if progress is not None and progress != self._shown:
            self._shown = progress
            attempt = job.attempts + (job.status is JobStatus.RUNNING)  # a running attempt is counted when it has ended
            write_line(f"{phrases.utc(progress.at)}\t{attempt}\tPROGRESS\t\t{visible(phrases.progress(progress))}")

    def over(self, job: Job) -> None:
        """Write how it ended, or its progress."""
        at = job.finished_at or job.started_at or job.created_at
        write_line(f"{phrases.utc(at)}\t{job.attempts}\t{job.status}\t\t{outcome(job)}")


class JsonView(PlainView):
    """An object per line: `{"kind": "line" | "progress" | "job", …}`."""

    def line(self, line: LogLine) -> None:
        """Write a log line."""
        write_json({"kind": "line", "line": line}, indent=0)

    def state(self, job: Job) -> None:
        """Write its progress if that has changed."""
        if job.progress is not None and job.progress != self._shown:
            self._shown = job.progress
            write_json({"kind": "progress", "progress": job.progress}, indent=0)

    def over(self, job: Job) -> None:
        """Write the job as it was seen last."""
        write_json({"kind": "job", "job": job}, indent=0)


class DrawnView:
    """Lines scroll, and a bar stays below them as long as the job has not ended."""

    def __init__(self) -> None:
        self._console = console()
        self._attempt: int | None = None
        self._bar = _bar(self._console)
        self._task = self._bar.add_task("", total=None, status="", progress="")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def line(self, line: LogLine) -> None:
        """Write a log line; the first of an attempt names the attempt."""
        from rich.rule import Rule
        from rich.text import Text

        if line.attempt != self._attempt:
            if self._attempt is not None or line.attempt > 1:
                title = Text(f"attempt {line.attempt}", "bright_black")
                self._console.print(Rule(title, align="left", style="bright_black"))
            self._attempt = line.attempt
        style = LEVEL_STYLES.get(line.level, "")
        time = f"{line.at.astimezone():%H:%M:%S}"
        parts = ((time, "bright_black"), "  ", (f"{line.level:<8}", style or "cyan"), (visible(line.text), style))
        self._console.print(Text.assemble(*parts), soft_wrap=True)

    def state(self, job: Job) -> None:
        """Move the bar; a job that has ended needs none."""
        if job.status in TERMINAL:
            return
        progress = job.progress
        total = None if progress is None else progress.total
        self._bar.update(
            self._task,
            total=total,
            completed=0 if progress is None or total is None else min(progress.done, total),
            status=f"[{STATUS_STYLES[job.status]}]{job.status}[/]",
            progress=_escaped(outcome(job)),
        )
        self._bar.start()

    def over(self, job: Job) -> None:
        """Write how it ended, or its progress."""
        from rich.text import Text

        self._console.print(
            Text.assemble((job.status.value, STATUS_STYLES[job.status]), "  ", outcome(job)), soft_wrap=True
        )


def outcome(job: Job) -> str:
    """Return in one line how a job ended, or its progress."""
    return visible(_outcome(job))


def _outcome(job: Job) -> str:
    if job.status is JobStatus.SUCCEEDED:
        ran = "" if job.run_ms is None else f" in {phrases.span(job.run_ms)}"
        return f"at attempt {job.attempts}{ran}"
    if job.status is JobStatus.FAILED:
        return f"{job.reason}: {phrases.first_line(job.error)}"
    if job.status in TERMINAL:
        return job.reason or ""
    return _waiting(job) if job.progress is None else phrases.progress(job.progress)


def _waiting(job: Job) -> str:
    if job.status is JobStatus.RUNNING:
        return f"on node {job.node}"
    return "" if job.due_at is None else f"due {phrases.local(job.due_at) if drawn() else phrases.utc(job.due_at)}"


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(text)


def _bar(screen: Any) -> ProgressBar:
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    return Progress(
        SpinnerColumn(),
        TextColumn("{task.fields[status]}"),
        BarColumn(bar_width=30),
        TextColumn("{task.fields[progress]}"),
        TimeElapsedColumn(),
        console=screen,
        transient=True,
    )
