"""Group commit: callers that enqueue at the same moment share a transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar
from uuid import UUID

from windlass.domain.ended import Effects, Ended
from windlass.domain.job import Conflict, NewJob, SubmittedJob
from windlass.errors import DuplicateBusinessKeyError, KeyConflictError
from windlass.runtime.failpoints import reached
from windlass.runtime.verbs import Verb
from windlass.stores.access import Access
from windlass.stores.channels import WORK
from windlass.stores.database import Database
from windlass.stores.ending import FollowUps
from windlass.stores.notifier import Notifier
from windlass.stores.plans import jobs
from windlass.submission.caller_group import CallerGroups
from windlass.submission.cascades import carry_out

T = TypeVar("T")

Unit = Sequence[NewJob]


def settled(answer: jobs.Answer) -> list[SubmittedJob]:
    """Return the store's answer, or raise the error it stands for."""
    if isinstance(answer, Conflict):
        if answer.of_follower:
            raise KeyConflictError(answer.key, UUID(answer.holder))
        raise DuplicateBusinessKeyError(answer.key, UUID(answer.holder), answer.holder_kind)
    return answer


class GroupCommit:
    """Stores units of jobs, each all or none, and wakes other processes: with the commit if it is time, or after it."""

    def __init__(
        self,
        access: Access,
        work: Notifier | None,
        publish: Callable[[Sequence[Ended], Effects], object],
        follow_ups: FollowUps,
    ) -> None:
        self._access = access
        self._work = work
        self._publish = publish
        """Called after a commit with the jobs that were canceled for others."""
        self._follow_ups = follow_ups
        self._groups = CallerGroups[Unit, jobs.Answer](self._commit)

    def submit(self, unit: Unit) -> Verb[list[SubmittedJob]]:
        """Store a unit; return when it is committed."""
        return settled((yield from self._groups.submit(unit)))

    def _commit(self, units: Sequence[Unit]) -> Verb[list[jobs.Answer]]:
        """Store units in one transaction."""
        rows = [job for unit in units for job in unit]
        # A commit with keys may wait for a lock, or store nothing: it carries no wakeup.
        keyed = any(job.idempotency_key or job.business_key for job in rows)

        def store(new: list[str], payload: str | None) -> Verb[jobs.Submission]:
            return self._access.run(jobs.submit, units, new, payload, self._follow_ups)

        submission = yield from self.announced(levels_of(rows), store, with_commit=not keyed)
        if submission.superseded.ended:
            self._publish(*submission.superseded)
            unfinished = submission.superseded.effects.unfinished
            yield from carry_out(self._access, self._publish, unfinished, self._follow_ups)
        return submission.answers

    def announced(
        self,
        levels: Sequence[tuple[str, int]],
        store: Callable[[list[str], str | None], Verb[T]],
        *,
        with_commit: bool = True,
    ) -> Verb[T]:
        """Store work at these levels, and wake other processes.

        `store` is called with new queues, and with a notification to send by the same commit.
        """
        yield from self._access.ready()
        database, work = self._access.database, self._work
        new, parts = new_queues(database, levels), payload_parts(levels)
        payload = work.with_commit(parts) if work is not None and with_commit else None
        try:
            answer = yield from store(new, payload)
        except BaseException:
            if work is not None and payload is not None:
                work.owe(payload)
            raise
        reached("submit.after_commit")
        database.known_queues.update(new)
        if payload is None:
            yield from self.notify(levels)
        return answer

    def notify(self, levels: Sequence[tuple[str, int]]) -> Verb[None]:
        """Wake other processes for work at these levels, which a commit has made due."""
        work, database = self._work, self._access.database
        if work is not None and levels and (later := work.take(payload_parts(levels))) is not None:
            yield database.notify, database.anotify, (WORK, later)


def new_queues(database: Database, levels: Sequence[tuple[str, int]]) -> list[str]:
    """Queues that this process has not seen stored yet."""
    return sorted({queue for queue, _ in levels} - database.known_queues)


def levels_of(rows: Sequence[NewJob]) -> list[tuple[str, int]]:
    """Return the queues and priority levels that have new work."""
    return sorted({(row.queue, row.priority) for row in rows})


def payload_parts(work: Sequence[tuple[str, int]]) -> list[str]:
    """Return the same as parts of a notification's payload."""
    return [f"{queue}:{level}" for queue, level in work]
