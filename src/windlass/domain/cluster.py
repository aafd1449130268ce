"""Nodes and queues as users see them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from windlass.domain.limits import Per


class Declared(NamedTuple):
    """What a node stores about the schedules of its application."""

    origin: str | None
    """`module:attribute` of the application; None if it has no such name."""
    digest: str | None
    """Stands for the keys of its schedules: nodes of one version of the code have the same."""


NOTHING_DECLARED: Final = Declared(None, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A worker process, from `app.nodes()`."""

    id: str
    host: str
    pid: int
    version: str
    queues: tuple[str, ...] | None
    """The queues it serves; None: all of them. Empty: it has drained, but bodies that hold permits still run on it."""
    started_at: datetime
    heartbeat_at: datetime
    alive: bool
    """Whether it holds its lease."""
    running: int
    """Jobs it ran at its last heartbeat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueHour:
    """What happened in a queue in this minute and the 59 before: `Queue.last_hour`."""

    succeeded: int
    """Jobs that ended SUCCEEDED."""
    failed: int
    """Jobs that failed for good."""
    retried: int
    """Attempts that failed and were followed by another."""
    wait_ms: int | None
    """Average time that jobs waited between being due and starting; None when none ran."""
    run_ms: int | None
    """Average run time of jobs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """A queue, from `app.queues()`."""

    name: str
    paused: bool
    waiting: int
    """Number of waiting jobs, due or not; 10,000 means as many or more."""
    running: int
    oldest_due: datetime | None
    """Earliest due time of the waiting jobs."""
    concurrency: int | None
    """Number of its jobs that may run at a time; None: any number."""
    rate: int | None
    """Number of its jobs that may start in a second, minute, hour or day (`per`); None: any number."""
    per: Per | None
    last_hour: QueueHour
