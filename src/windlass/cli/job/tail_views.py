"""How a job that is followed is shown: drawn with a live bar, as lines for pipes, as objects for programs."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

from windlass.cli import phrases
from windlass.cli.output import console, drawn, say, say_json
from windlass.cli.tables import STATUS_STYLES
from windlass.domain.control_characters import indented, visible
from windlass.domain.job import Job
from windlass.domain.progress import LogLine
from windlass.domain.states import TERMINAL, JobStatus

if TYPE_CHECKING:
    from rich.progress import Progress as ProgressBar

LEVEL_STYLES: Final = {"DEBUG": "dim", "WARNING": "yellow", "ERROR": "red", "CRITICAL": "bold red"}


class View(Protocol):
    """What a job is shown on."""

    def __enter__(self) -> Self:
        """Begin."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing moves any more."""

    def line(self, line: LogLine) -> None:
        """A log line."""

    def state(self, job: Job) -> None:
        """What the job is at the moment."""

    def over(self, job: Job) -> None:
        """The last word, after the end of the view."""


def view() -> View:
    """The view that suits standard output."""
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
        """A log line; those of a traceback follow it indented."""
        text = indented(line.text, by="\t")
        say(f"{phrases.utc(line.at)}\t{line.attempt}\t{line.level}\t{line.logger}\t{text}")

    def state(self, job: Job) -> None:
        """Its progress, when that has changed."""
        said = job.progress
        if said is not None and said != self._shown:
            self._shown = said
            attempt = job.attempts + (job.status is JobStatus.RUNNING)  # one that runs is counted when it has ended
            say(f"{phrases.utc(said.at)}\t{attempt}\tPROGRESS\t\t{visible(phrases.progress(said))}")

    def over(self, job: Job) -> None:
        """How it ended, or how far it is."""
        at = job.finished_at or job.started_at or job.created_at
        say(f"{phrases.utc(at)}\t{job.attempts}\t{job.status}\t\t{outcome(job)}")


class JsonView(PlainView):
    """An object per line: `{"kind": "line" | "progress" | "job", …}`."""

    def line(self, line: LogLine) -> None:
        """A log line."""
        say_json({"kind": "line", "line": line}, indent=0)

    def state(self, job: Job) -> None:
        """Its progress, when that has changed."""
        if job.progress is not None and job.progress != self._shown:
            self._shown = job.progress
            say_json({"kind": "progress", "progress": job.progress}, indent=0)

    def over(self, job: Job) -> None:
        """The job as it is in the end."""
        say_json({"kind": "job", "job": job}, indent=0)


class DrawnView:
    """Lines go up, a bar stays below them for as long as the job is not over."""

    def __init__(self) -> None:
        self._console = console()
        self._attempt: int | None = None
        self._bar = _bar(self._console)
        self._task = self._bar.add_task("", total=None, status="", said="")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def line(self, line: LogLine) -> None:
        """A log line; the first of an attempt says which."""
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
        """Move the bar; a job that is over needs none."""
        if job.status in TERMINAL:
            return
        said = job.progress
        total = None if said is None else said.total
        self._bar.update(
            self._task,
            total=total,
            completed=0 if said is None or total is None else min(said.done, total),
            status=f"[{STATUS_STYLES[job.status]}]{job.status}[/]",
            said=_escaped(outcome(job)),
        )
        self._bar.start()

    def over(self, job: Job) -> None:
        """How it ended, or how far it is."""
        from rich.text import Text

        self._console.print(
            Text.assemble((job.status.value, STATUS_STYLES[job.status]), "  ", outcome(job)), soft_wrap=True
        )


def outcome(job: Job) -> str:
    """How a job ended, or how far it is, in a line."""
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
        TextColumn("{task.fields[said]}"),
        TimeElapsedColumn(),
        console=screen,
        transient=True,
    )
