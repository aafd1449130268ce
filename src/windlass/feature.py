"""What a feature adds to an application and its nodes, which take a list of features and know none by name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from windlass.domain.cluster import Declared
from windlass.domain.ended import Effects, Ended
from windlass.domain.job import Claim, Payload
from windlass.domain.rhythm import Rhythm
from windlass.domain.transition import Failure
from windlass.runtime.duty import Duty
from windlass.runtime.error_handling import ErrorHandling
from windlass.runtime.service import Bell, Service
from windlass.runtime.unfinished_work import UnfinishedWork
from windlass.spi import ExecutorProvider
from windlass.stores.database import Database
from windlass.stores.dialect import Dialect
from windlass.stores.ending import FollowUp, FollowUps
from windlass.stores.lease_holder import LeaseHolder
from windlass.stores.plan import Plan


class NodeTools(NamedTuple):
    """What a node provides to the duties and services of features."""

    database: Database
    lease: Callable[[str, Rhythm], LeaseHolder]
    """Creates the node's side of a lease, by its name and the rhythm of its duty."""
    publish: Callable[[Sequence[Ended], Effects], int]
    """Publishes jobs that a duty or service has ended or revived, after the commit."""
    errors: ErrorHandling
    unfinished: UnfinishedWork
    """Work that commits of the node have left for later transactions."""
    schedule_changes: Bell
    """Rings when the next tick of a schedule may have changed."""
    follow_ups: FollowUps = ()
    """What belongs to the end of jobs, of all features."""


class BodyTools:
    """What a node provides to the bodies of features, as `JobContext.tools`."""

    def __init__(
        self,
        database: Database,
        executors: ExecutorProvider,
        describe: Callable[[BaseException], Failure],
        new_work: Callable[[Collection[tuple[str, int]]], None],
    ) -> None:
        self.database = database
        self.executors = executors
        self.describe = describe
        """Returns an error's text for storage: sanitised."""
        self.new_work = new_work
        """Wakes nodes for new jobs at levels of queues, after a commit."""
        self.shared: dict[str, Any] = {}
        """What a feature keeps for all of its bodies on this node, by its name."""


class ArgumentSource(NamedTuple):
    """Arguments that are read when a job is about to run: they were not known when it was stored."""

    concerns: Callable[[Payload], bool]
    """Whether a job has such arguments; called for every claimed job with options."""
    read: Callable[[Dialect, Mapping[str, Payload]], Plan[Any]]
    """Reads what the jobs need, by their ids, all at once."""
    fill: Callable[[Claim, Payload, Any], Payload]
    """Given a job, its payload and what was read: returns the payload with its arguments.

    Raises `SerializationError` for a job that cannot have them, which then fails.
    """


class NodeStart(NamedTuple):
    """What a feature does when a node starts, before anything is claimed."""

    declared: Callable[[], Declared]
    """Returns what the node's row stores about its application."""
    before: Callable[[], Awaitable[None]]
    """Called before the node registers."""
    after: Callable[[], Awaitable[None]]
    """Called after that."""


class GuardSource(NamedTuple):
    """What the guards of some followers are about: read when one that was released without a decision begins.

    A follower is stored with `Follows.DECIDED` and a `domain.branches.Guard`. When its parent ends without an attempt
    (`stores.plans.flows.follow` gets an `EndedStep` without `branches`), it is released guarded, and its attempt calls
    the guard's predicate with what is read here.
    """

    about: str
    """The kind of guard that it is for (`Guard.about`)."""
    read: Callable[[Dialect, Sequence[str]], Plan[Mapping[str, Any]]]
    """Returns the subjects of these parents, by id; one that has not ended is left out."""


def _none(tools: NodeTools) -> tuple[()]:
    del tools
    return ()


class Feature(NamedTuple):
    """One feature, as its package exports it."""

    name: str
    follow_ups: tuple[FollowUp, ...] = ()
    """Its writes where jobs end or are revived."""
    duties: Callable[[NodeTools], Sequence[Duty]] = _none
    """Its duties, which one node at a time does, under a lease."""
    services: Callable[[NodeTools], Sequence[Service]] = _none
    """Its services, which every node runs."""
    arguments: ArgumentSource | None = None
    """Arguments that it adds to some jobs."""
    start: NodeStart | None = None
    """What it does when a node starts."""
    guards: tuple[GuardSource, ...] = ()
    """What the guards of its followers are about."""
