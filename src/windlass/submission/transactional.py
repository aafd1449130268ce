"""Enqueueing on the caller's own connection: the job is stored if, and when, the caller commits."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final

from windlass.domain.job import NewJob, Placed
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
from windlass.submission.group_commit import levels_of, new_queues, settled, words_for
from windlass.submission.resources import checked_resources, resources_of

SENDER: Final = "borrowed"
"""Whose words these are: nobody's, so that the worker of this process heeds them too. It has not been woken by the
enqueue, which came before the commit."""


class CallerTransactions:
    """Stores rows through connections of callers. Nothing is remembered of it: the caller may roll back."""

    def __init__(self, access: Access, follow_ups: FollowUps) -> None:
        self._access = access
        self._follow_ups = follow_ups
        self._database = access.database

    @cached_property
    def _runner(self) -> CallerPlanRunner:
        return CallerPlanRunner(self._database)

    def submit(self, connection: Any, rows: Sequence[NewJob]) -> Verb[list[Placed]]:
        """Store rows on a connection, all or none."""
        words = self._words(rows)
        if not self._database.migrates_itself:
            yield from self._access.ready()
            return (yield from self._run(connection, _place, rows, *words))
        try:
            return (yield from self._run(connection, _place, rows, *words))
        except MigrationRequiredError:
            return (yield from self._run(connection, _make_and_place, rows, *words))

    def _run(self, *args: Any) -> Verb[list[Placed]]:
        placed: list[Placed] = yield self._runner.run, self._runner.arun, (*args, self._follow_ups)
        return placed

    def _words(self, rows: Sequence[NewJob]) -> tuple[list[str], str]:
        """The queues to store, and what to tell at the commit."""
        levels = levels_of(rows)
        if self._runner.writes_first:  # storing a queue that is known is a write that changes nothing
            queues = sorted({queue for queue, _ in levels})
        else:
            queues = new_queues(self._database, levels)
        return queues, payload_of(SENDER, words_for(levels))


def _place(
    dialect: Dialect, rows: Sequence[NewJob], queues: Sequence[str], tell: str, follow_ups: FollowUps
) -> Plan[list[Placed]]:
    """Store rows; a conflict is raised inside the plan, so that not even a new queue is left of it."""
    if asked := resources_of(rows):
        checked_resources(asked, (yield from limits.known_resources(dialect, sorted(asked))))
    submission = yield from jobs.submit(dialect, [rows], queues, tell, follow_ups)
    return settled(submission.answers[0])


def _make_and_place(
    dialect: Dialect, rows: Sequence[NewJob], queues: Sequence[str], tell: str, follow_ups: FollowUps
) -> Plan[list[Placed]]:
    """Make the tables first, in the same transaction: another connection of ours might wait for it in vain."""
    yield from migrate.make_current(dialect)
    placed = yield from _place(dialect, rows, queues, tell, follow_ups)
    return placed
