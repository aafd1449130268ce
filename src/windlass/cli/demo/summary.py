"""What the store has of the jobs of each scene."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from windlass import JobStatus, Windlass
from windlass.cli.demo.presenter import Cell, Presenter

ENDINGS = ("succeeded", "failed")
"""Outcomes of an attempt that end a job."""


class SceneJobs(NamedTuple):
    """The jobs of one scene."""

    title: str
    jobs: list[UUID]


class Counts(NamedTuple):
    """What the store has of the jobs of a scene."""

    succeeded: int
    attempts: int
    retried: int
    lost: int
    ended_once: int


def counts_of(app: Windlass, jobs: list[UUID]) -> Counts:
    """Read jobs and their histories."""
    stored = [app.get(job) for job in jobs]
    histories = [[attempt.outcome for attempt in app.history(job)] for job in jobs]
    outcomes = [outcome for history in histories for outcome in history]
    endings = [sum(outcome in ENDINGS for outcome in history) for history in histories]
    return Counts(
        succeeded=sum(job.status is JobStatus.SUCCEEDED for job in stored),
        attempts=sum(job.attempts for job in stored),
        retried=outcomes.count("retried"),
        lost=outcomes.count("lost"),
        ended_once=endings.count(1),
    )


def summary(presenter: Presenter, app: Windlass, scenes: list[SceneJobs]) -> None:
    """A table from the store, which proves that each job ended once."""
    rows: list[list[Cell]] = []
    for title, jobs in scenes:
        found = counts_of(app, jobs)
        once = found.ended_once == len(jobs) == found.succeeded
        presenter.expect(f"{title}: each of {len(jobs)} jobs succeeded, once", once)
        numbers = (len(jobs), found.succeeded, found.attempts, found.retried, found.lost)
        mark = ("✓ each", "green") if once else ("✗ no", "bold red")
        rows.append([(title, ""), *((str(number), "" if number else "dim") for number in numbers), mark])
    presenter.table(["scene", "jobs", "succeeded", "attempts", "retried", "lost", "ended once"], rows)
