"""Enqueues on the caller's connection: the job is stored if, and when, the caller commits."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final

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
        notification = self._notification(rows)
        if not self._database.migrates_itself:
            yield from self._access.ready()
            return (yield from self._run(connection, _store, rows, *notification))
        try:
            return (yield from self._run(connection, _store, rows, *notification))
        except MigrationRequiredError:
            return (yield from self._run(connection, _create_and_store, rows, *notification))

    def _run(self, *args: Any) -> Verb[list[SubmittedJob]]:
        placed: list[SubmittedJob] = yield self._runner.run, self._runner.arun, (*args, self._follow_ups)
        return placed

    def _notification(self, rows: Sequence[NewJob]) -> tuple[list[str], str]:
        """Return the queues to store, and the payload to notify at the commit."""
        levels = levels_of(rows)
        if self._runner.writes_first:  # storing a known queue changes nothing
            queues = sorted({queue for queue, _ in levels})
        else:
            queues = new_queues(self._database, levels)
        return queues, payload_of(SENDER, payload_parts(levels))


def _store(
    dialect: Dialect, rows: Sequence[NewJob], queues: Sequence[str], tell: str, follow_ups: FollowUps
) -> Plan[list[SubmittedJob]]:
    """Store rows; a conflict is raised inside the plan, so that not even a new queue remains."""
    if asked := resources_of(rows):
        checked_resources(asked, (yield from limits.known_resources(dialect, sorted(asked))))
    submission = yield from jobs.submit(dialect, [rows], queues, tell, follow_ups)
    return settled(submission.answers[0])


def _create_and_store(
    dialect: Dialect, rows: Sequence[NewJob], queues: Sequence[str], tell: str, follow_ups: FollowUps
) -> Plan[list[SubmittedJob]]:
    """Create the tables first, in the same transaction: our own connections might wait for it forever."""
    yield from migrate.make_current(dialect)
    placed = yield from _store(dialect, rows, queues, tell, follow_ups)
    return placed
