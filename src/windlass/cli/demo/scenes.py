"""The scenes that need one process: the first program, retries, priorities."""

from __future__ import annotations

import queue
import subprocess
import sys
import threading
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from windlass import Attempt, JobCompleted, JobHandle, JobRetrying, Priority, Windlass
from windlass.cli.demo.presenter import LONGEST_WAIT, Cell, Presenter
from windlass.cli.demo.shop import FAILURES, FIRST_DELAY, Shop
from windlass.cli.demo.summary import SceneJobs
from windlass.domain.clock import monotonic

FIRST_PROGRAM: Final = """
from windlass import Backoff, Windlass

app = Windlass("sqlite:///shop.db")

@app.job(max_retries=3, backoff=Backoff.exponential(1))
def charge(invoice_id: int) -> str:
    return f"charged {invoice_id}"

if __name__ == "__main__":
    with app.worker():
        print(charge.enqueue(42).result(timeout=10))
"""

MESSAGES: Final = (
    ("tidy the shelves", Priority.LOWEST),
    ("newsletter", Priority.LOW),
    ("receipt for Ann", Priority.NORMAL),
    ("fraud alert", Priority.CRITICAL),
    ("refund for Bob", Priority.HIGH),
    ("receipt for Cem", Priority.NORMAL),
    ("out of stock", Priority.CRITICAL),
    ("weekly report", Priority.LOW),
)
COLOURS: Final = {0: "bright_black", 1: "blue", 2: "white", 3: "yellow", 4: "bold red"}
PER_SECOND: Final = 24
"""Characters that a second takes in the timeline of attempts."""


def first_program(presenter: Presenter, folder: Path) -> None:
    """A file, a job, a worker and a result: run as a program of its own."""
    presenter.scene(
        1, "The first program", "One file is the whole thing: no server, no migration step, no configuration."
    )
    presenter.code(FIRST_PROGRAM, "shop.py")
    (folder / "shop.py").write_text(FIRST_PROGRAM)
    ran = subprocess.run(
        [sys.executable, "shop.py"], cwd=folder, capture_output=True, text=True, timeout=LONGEST_WAIT, check=False
    )
    output = (ran.stdout + ran.stderr).strip()
    presenter.line(("$ python shop.py", "bold"))
    presenter.line((output, "green" if ran.returncode == 0 else "red"))
    presenter.expect("the first program prints `charged 42` and nothing else", output == "charged 42")


def retries(presenter: Presenter, shop: Shop) -> SceneJobs:
    """A job that fails three times, and is tried again after twice the time each time."""
    presenter.scene(
        2,
        "Retries with backoff",
        f"The bank does not answer {FAILURES} times. Backoff.exponential({FIRST_DELAY}) doubles the pause each time.",
    )
    narrator = _Narrator(presenter, shop.app)
    with shop.app.worker(concurrency=4):
        narrator.begin()
        handle: JobHandle[str] = shop.collect.enqueue(1001)
        result = handle.result(timeout=LONGEST_WAIT)
        narrator.over.wait(LONGEST_WAIT)
    attempts = shop.app.history(handle.id)
    presenter.line((_timeline(attempts), "cyan"))
    presenter.expect("the order is paid at the fourth attempt", result == "paid at attempt 4")
    outcomes = [attempt.outcome for attempt in attempts]
    presenter.expect("three attempts were retried, one succeeded", outcomes == ["retried"] * FAILURES + ["succeeded"])
    pauses = [FIRST_DELAY * 2**n for n in range(FAILURES)]
    held = [gap >= pause - 0.002 for gap, pause in zip(_gaps(attempts), pauses, strict=False)]
    presenter.expect("no pause was shorter than its backoff", len(held) == FAILURES and all(held))
    return SceneJobs("retries with backoff", [handle.id])


class _Narrator:
    """Shows each attempt as its event comes in."""

    def __init__(self, presenter: Presenter, app: Windlass) -> None:
        self._presenter = presenter
        self._began = 0.0
        self.over = threading.Event()
        app.on(JobRetrying)(self._retrying)
        app.on(JobCompleted)(self._completed)

    def begin(self) -> None:
        self._began = monotonic()

    def _show(self, attempt: int, *cells: Cell) -> None:
        at = f"{monotonic() - self._began:5.2f} s"
        self._presenter.line((at, "dim"), (f"attempt {attempt}", "bold"), *cells)

    def _retrying(self, event: JobRetrying) -> None:
        if self.over.is_set():
            return  # another scene's
        pause = f"next in {event.delay.total_seconds():g} s"
        self._show(event.attempt, ("✗", "red"), (event.error, "red"), (pause, "yellow"))

    def _completed(self, event: JobCompleted) -> None:
        if not self.over.is_set():
            self._show(event.attempt, ("✓ paid", "green"))
            self.over.set()


def _gaps(attempts: Sequence[Attempt]) -> list[float]:
    return [
        (later.started_at - earlier.ended_at).total_seconds()
        for earlier, later in pairwise(attempts)
        if later.started_at is not None
    ]


def _timeline(attempts: Sequence[Attempt]) -> str:
    """The attempts as marks, as far from each other as they were in time."""
    line = ""
    for attempt, gap in zip(attempts, [*_gaps(attempts), 0.0], strict=False):
        line += ("✓" if attempt.outcome == "succeeded" else "✗") + "─" * round(gap * PER_SECOND)
    return line


def priorities(presenter: Presenter, shop: Shop) -> SceneJobs:
    """Jobs stored before a worker is there run by priority, then in their order."""
    presenter.scene(
        3,
        "Priorities",
        "Eight messages wait, then a worker with one slot starts: the urgent ones go first, equals in their order.",
    )
    calls = [shop.deliver.bind(text).using(priority=priority) for text, priority in MESSAGES]
    handles: list[JobHandle[Any]] = shop.app.enqueue_many(calls)
    names = dict(zip([handle.id for handle in handles], MESSAGES, strict=True))
    completed: queue.Queue[JobCompleted] = queue.Queue()
    shop.app.on(JobCompleted)(completed.put)
    with shop.app.worker(concurrency=1):
        # with one slot, as they ended so they ran
        ran = [names[completed.get(timeout=LONGEST_WAIT).job_id] for _ in handles]
    rows = [
        [(str(number), "dim"), _message(stored), _message(order)]
        for number, (stored, order) in enumerate(zip(MESSAGES, ran, strict=True), 1)
    ]
    presenter.table(["", "enqueued", "ran"], rows)
    expected = sorted(MESSAGES, key=lambda message: -message[1])
    presenter.expect("all messages ran by priority, then in the order they came", ran == expected)
    return SceneJobs("priorities", list(names))


def _message(message: tuple[str, Priority]) -> Cell:
    text, priority = message
    return (f"{priority.name:<8}  {text}", COLOURS[priority])
