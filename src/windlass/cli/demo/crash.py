"""The scene that needs several processes: a worker is killed in the middle of jobs, another one finishes them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Self
from uuid import UUID

from windlass import Job, JobStatus, Windlass
from windlass.cli.demo.presenter import LONGEST_WAIT, Board, Cell, Presenter, until
from windlass.cli.demo.shop import LOCATION, NODE, PACKING, URL_VARIABLE, Shop
from windlass.cli.demo.summary import SceneJobs
from windlass.domain.clock import SystemClock

PARCELS = 12
HANDS = 4
"""Parcels that a worker packs at a time."""


def crash(presenter: Presenter, shop: Shop) -> SceneJobs:
    """Kill worker A with SIGKILL while it packs; worker B finishes everything."""
    lease = NODE.heartbeat_interval * NODE.missed_heartbeats
    presenter.scene(
        4,
        "A worker is killed",
        f"{PARCELS} parcels, each {PACKING} s of work. Worker A is killed with SIGKILL in the middle. Its lease runs "
        f"out after {lease:g} s or less (15 s by default), then its parcels wait again and worker B packs them.",
    )
    jobs = [handle.id for handle in shop.app.enqueue_many([shop.pack.bind(n) for n in range(1, PARCELS + 1)])]
    parcels = Parcels(shop.app, jobs)
    with presenter.board() as board, WorkerProcess(shop.app.url) as first:
        presenter.line((f"worker A starts (pid {first.pid}) and packs {HANDS} parcels at a time", ""))
        halfway = parcels.watch(board, parcels.in_the_middle, "worker A packs")
        lost = [job.id for job in parcels.jobs() if job.status is JobStatus.RUNNING]
        first.kill()
        parcels.first_is_gone = True
        presenter.line(("SIGKILL", "bold red"), (f"worker A is gone, with {len(lost)} parcels in its hands", ""))
        with WorkerProcess(shop.app.url) as second:
            presenter.line((f"worker B starts (pid {second.pid}) and takes over", ""))
            finished = parcels.watch(board, parcels.all_done, "worker B packs, and waits for the lease of A to run out")
            clean = second.stop() == 0
        parcels.show(board, f"all {PARCELS} parcels are packed" if finished else "not all parcels were packed")
    presenter.expect("worker A was in the middle of its work when it was killed", halfway and len(lost) > 0)
    presenter.expect("worker B finished all parcels and drained cleanly", finished and clean)
    stories = {job: parcels.story(job) for job in jobs}
    repeated = all(stories[job] == "lost with A → succeeded on B" for job in lost)
    presenter.expect("what A held was lost with it, and succeeded on B", repeated)
    presenter.table(["parcels", "history", "state", "attempts counted"], _rows(parcels.jobs(), stories))
    return SceneJobs("a worker is killed", jobs)


def _rows(jobs: Sequence[Job], stories: dict[UUID, str]) -> list[list[Cell]]:
    """Parcels with the same story share a row."""
    alike: dict[tuple[str, str, int], list[int]] = {}
    for number, job in enumerate(jobs, 1):
        alike.setdefault((stories[job.id], job.status.value, job.attempts), []).append(number)
    return [
        [
            (", ".join(map(str, numbers)), "bold"),
            (story, "yellow" if "lost" in story else ""),
            (status, "green" if status == "SUCCEEDED" else "red"),
            (str(attempts), ""),
        ]
        for (story, status, attempts), numbers in alike.items()
    ]


class Parcels:
    """The parcels as the store has them."""

    def __init__(self, app: Windlass, ids: Sequence[UUID]) -> None:
        self._app = app
        self._ids = ids
        self._first_node: str | None = None
        self.first_is_gone = False

    def jobs(self) -> list[Job]:
        """All of them, now."""
        return [self._app.get(job) for job in self._ids]

    def in_the_middle(self, jobs: Sequence[Job]) -> bool:
        """Whether some are packed, and others have been in hand for a while."""
        statuses = [job.status for job in jobs]
        if statuses.count(JobStatus.SUCCEEDED) < HANDS or statuses.count(JobStatus.RUNNING) < HANDS:
            return False
        latest = max(job.picked_at for job in jobs if job.picked_at is not None)
        return (SystemClock().now() - latest).total_seconds() > PACKING / 2

    def all_done(self, jobs: Sequence[Job]) -> bool:
        """Whether all are packed."""
        return all(job.status is JobStatus.SUCCEEDED for job in jobs)

    def watch(self, board: Board, condition: Callable[[Sequence[Job]], bool], caption: str) -> bool:
        """Show the parcels until a condition holds; False if it does not in time."""
        return until(lambda: condition(self.show(board, caption)))

    def show(self, board: Board, caption: str) -> list[Job]:
        """Show the parcels once."""
        jobs = self.jobs()
        board([self._cell(number, job) for number, job in enumerate(jobs, 1)], caption)
        return jobs

    def story(self, job: UUID) -> str:
        """What happened to a parcel, attempt by attempt."""
        steps = []
        for attempt in self._app.history(job):
            joint = "with" if attempt.outcome == "lost" else "on"
            steps.append(f"{attempt.outcome} {joint} {self._letter(attempt.node)}")
        return " → ".join(steps)

    def _letter(self, node: str | None) -> str:
        if self._first_node is None:
            self._first_node = node
        return "" if node is None else "A" if node == self._first_node else "B"

    def _cell(self, number: int, job: Job) -> Cell:
        worker = self._letter(job.node)
        if job.status is JobStatus.SUCCEEDED:
            return (f"{number} {worker}✓", "black on green" if worker == "A" else "black on cyan")
        if job.status is JobStatus.RUNNING and worker == "A" and self.first_is_gone:
            return (f"{number} A✗", "white on red")
        if job.status is JobStatus.RUNNING:
            return (f"{number} {worker}…", "black on yellow" if worker == "A" else "black on bright_blue")
        return (f"{number}   ", "white on red" if job.crash_count else "white on bright_black")


class WorkerProcess:
    """A worker process of the demo's shop."""

    def __init__(self, url: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "windlass", "worker", LOCATION, "-c", str(HANDS), "--log-level", "error"],
            env={**os.environ, URL_VARIABLE: url},
            stdout=subprocess.DEVNULL,
            process_group=0,
        )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def kill(self) -> None:
        """End it as a power cut would."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> int:
        """Let it drain; gives its exit code."""
        self._process.terminate()
        return self._process.wait(LONGEST_WAIT)
