"""Enqueues on the caller's connection: the job is stored if, and when, the caller commits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any, Final, TypeVar

from windlass.domain.job import NewJob, SubmittedJob
from windlass.errors import MigrationRequiredError
from windlass.runtime.verbs import Verb
from windlass.stores import migrate
from windlass.stores.access import Access
from windlass.stores.caller_transactions.runner import CallerPlanRunner
from windlass.stores.dialect import Dialect
from windlass.stores.ending import FollowUps
from windlass.stores.notifier import payload_of
from windlass.stores.plan import Plan
from windlass.stores.plans import jobs, limits
from windlass.submission.group_commit import levels_of, new_queues, payload_parts, settled
from windlass.submission.resources import checked_resources, resources_of

T = TypeVar("T")

SENDER: Final = "borrowed"
"""The sender id of these notifications, which no process has, so that this process's worker reacts to them too.

The enqueue did not wake it, because it came before the commit.
"""


class CallerTransactions:
    """Stores rows through connections of callers. Nothing is cached: the caller may roll back."""

    def __init__(self, access: Access, follow_ups: FollowUps) -> None:
        self._access = access
        self._follow_ups = follow_ups
        self._database = access.database

    @cached_property
    def _runner(self) -> CallerPlanRunner:
        return CallerPlanRunner(self._database)

    def submit(self, connection: Any, rows: Sequence[NewJob]) -> Verb[list[SubmittedJob]]:
        """Store rows on a connection, all or none."""
        return self.store(connection, rows, partial(_store, rows=rows, follow_ups=self._follow_ups))

    def store(
        self, connection: Any, rows: Sequence[NewJob], plan: Callable[[Dialect, list[str], str], Plan[T]]
    ) -> Verb[T]:
        """Store rows on a connection by a plan, which gets the queues to store, and what to notify at the commit."""
        notification = self._notification(rows)
        if not self._database.migrates_itself:
            yield from self._access.ready()
            return (yield from self._run(connection, plan, *notification))
        try:
            return (yield from self._run(connection, plan, *notification))
        except MigrationRequiredError:
            return (yield from self._run(connection, partial(_create_and_store, plan=plan), *notification))

    def _run(self, connection: Any, plan: Callable[[Dialect, list[str], str], Plan[T]], *args: Any) -> Verb[T]:
        stored: T = yield self._runner.run, self._runner.arun, (connection, plan, *args)
        return stored

    def _notification(self, rows: Sequence[NewJob]) -> tuple[list[str], str]:
        """Return the queues to store, and the payload to notify at the commit."""
        levels = levels_of(rows)
        if self._runner.writes_first:  # storing a known queue changes nothing
            queues = sorted({queue for queue, _ in levels})
        else:
            queues = new_queues(self._database, levels)
        return queues, payload_of(SENDER, payload_parts(levels))


def _store(
    dialect: Dialect, queues: Sequence[str], notification: str, *, rows: Sequence[NewJob], follow_ups: FollowUps
) -> Plan[list[SubmittedJob]]:
    """Store rows; a conflict is raised inside the plan, so that not even a new queue remains."""
    if asked := resources_of(rows):
        checked_resources(asked, (yield from limits.known_resources(dialect, sorted(asked))))
    submission = yield from jobs.submit(dialect, [rows], queues, notification, follow_ups)
    return settled(submission.answers[0])


def _create_and_store(
    dialect: Dialect, queues: list[str], notification: str, *, plan: Callable[[Dialect, list[str], str], Plan[T]]
) -> Plan[T]:
    """Create the tables first, in the same transaction: our own connections might wait for it forever."""
    yield from migrate.make_current(dialect)
    return (yield from plan(dialect, queues, notification))
