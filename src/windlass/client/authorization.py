"""Who may do what: every verb that reads or moves jobs for somebody asks here first.

What the engine does by itself (claiming, retrying, callbacks, recovery) is nobody's wish, and never asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

from windlass import loggers
from windlass.context import JobContext, current_context
from windlass.domain.identity import parse_job_id
from windlass.domain.job import Job
from windlass.domain.states import JobStatus
from windlass.errors import NotAuthorizedError
from windlass.spi import Authorizer, Clock
from windlass.submission.call import Call

logger = loggers.logger("windlass.authorization")

THE_PROGRAM: Final = "the program itself"
NO_ID: Final = UUID(int=0)
"""Of a job that is about to be enqueued."""
LONGEST_NAME: Final = 100

JobOrId = Job | UUID | str | None


class _Acting(NamedTuple):
    principal: object
    within: JobContext | None
    """The job whose body said so. What bodies do is their own doing, whoever enqueued them or started the worker."""


_acting: ContextVar[_Acting | None] = ContextVar("windlass_acting", default=None)
_asking: ContextVar[bool] = ContextVar("windlass_asking", default=False)
"""Whether an authorizer is being asked: what it looks up to find its answer needs nobody's leave."""


def acting_principal() -> object:
    """Whom the application acts for here; None: for nobody but itself."""
    acting = _acting.get()
    return None if acting is None or acting.within is not current_context.get() else acting.principal


class Authorization:
    """Asks the authorizer. Without one everything is allowed, at no cost; a broken one allows nothing."""

    def __init__(
        self,
        authorizer: Authorizer | None,
        read: Callable[[str], Job | None],
        clock: Clock,
        redact: Callable[[str], str],
    ) -> None:
        self._authorizer = authorizer
        self._read = read
        self._clock = clock
        self._redact = redact

    def check(self, action: str, job: JobOrId = None) -> None:
        """Raise `NotAuthorizedError` unless whoever acts here may do this, to this job if there is one."""
        if self._authorizer is None:
            return
        found = job if isinstance(job, Job) or job is None else self._read(parse_job_id(job))
        refusal = self._refusal(action, found)
        if refusal is not None:
            job_id = job.id if isinstance(job, Job) else None if job is None else UUID(str(job))
            error = NotAuthorizedError(self._name(), action, None if job_id == NO_ID else job_id, refusal)
            logger.info("refused: %s", error)
            raise error

    async def acheck(self, action: str, job: JobOrId = None) -> None:
        """Async twin of `check`: the authorizer may ask a database, and does so off the loop."""
        if self._authorizer is not None:
            await asyncio.to_thread(self.check, action, job)

    def check_calls(self, calls: Iterable[Call[Any]]) -> None:
        """Raise unless every one of these calls may be enqueued."""
        if self._authorizer is not None:
            now = self._clock.now()
            for call in calls:
                self.check("enqueue", _job_to_come(call, now))

    async def acheck_calls(self, calls: Iterable[Call[Any]]) -> None:
        """Async twin of `check_calls`."""
        if self._authorizer is not None:
            await asyncio.to_thread(self.check_calls, calls)

    def visible(self, jobs: Iterable[Job]) -> list[Job]:
        """Those of a page that may be got."""
        if self._authorizer is None:
            return list(jobs)
        return [job for job in jobs if self._refusal("get", job) is None]

    def allowed(self, action: str, ids: Sequence[UUID]) -> set[UUID]:
        """Those of these jobs that this may be done to."""
        if self._authorizer is None:
            return set(ids)
        return {job for job in ids if self._refusal(action, self._read(str(job))) is None}

    async def aallowed(self, action: str, ids: Sequence[UUID]) -> set[UUID]:
        """Async twin of `allowed`."""
        return set(ids) if self._authorizer is None else await asyncio.to_thread(self.allowed, action, ids)

    async def avisible(self, jobs: Iterable[Job]) -> list[Job]:
        """Async twin of `visible`."""
        return list(jobs) if self._authorizer is None else await asyncio.to_thread(self.visible, jobs)

    def _refusal(self, action: str, job: Job | None) -> str | None:
        """Why not; None if it may. Whatever goes wrong is no consent."""
        if self._authorizer is None or _asking.get():
            return None
        token = _asking.set(True)
        try:
            answer: object = self._authorizer.may(acting_principal(), action, job)
        except Exception as error:  # noqa: BLE001 - users' code
            trouble = f"the authorizer raised {type(error).__name__}"
        else:
            if isinstance(answer, bool):
                return None if answer else "the authorizer refused"
            trouble = f"the authorizer answered with {type(answer).__name__}, not True or False"
        finally:
            _asking.reset(token)
        logger.error("%s when it was asked for %r, which is refused; mend it", trouble, action)
        return trouble

    def name(self) -> str | None:
        """Whom the application acts for, as it may be written down; None: nobody but itself."""
        return None if acting_principal() is None else self._name()

    def _name(self) -> str:
        principal = acting_principal()
        try:
            return THE_PROGRAM if principal is None else self._redact(str(principal))[:LONGEST_NAME]
        except Exception:  # noqa: BLE001 - users' class; it must not turn a refusal into something else
            return type(principal).__name__


class Acting:
    """The part of an application that knows for whom it works."""

    _authorization: Authorization

    @contextmanager
    def acting_as(self, principal: object) -> Iterator[None]:
        """Do what follows for somebody: the authorizer is asked with this principal, here and in tasks begun here.

        ```python
        with app.acting_as(request.user):
            app.cancel(job_id)  # NotAuthorizedError unless may(request.user, "cancel", job)
        ```
        It holds for the present context (thread or task), for calls of every application. Without it the principal is
        None: the program itself. Bodies of jobs are the program itself again.
        """
        token = _acting.set(_Acting(principal, current_context.get()))
        try:
            yield
        finally:
            _acting.reset(token)

    def check_may(self, action: str, job: JobOrId = None) -> None:
        """Raise `NotAuthorizedError` unless the authorizer allows `action`, on a job (or the job of an id) if given.

        For verbs of your own, e.g. of an admin page: `app.check_may("export", job)`.
        """
        self._authorization.check(action, job)

    async def acheck_may(self, action: str, job: JobOrId = None) -> None:
        """Async twin of `check_may`."""
        await self._authorization.acheck(action, job)


def _job_to_come(call: Call[Any], now: datetime) -> Job:
    """A call as the job it would be, so that it can be judged before it is stored."""
    options = call.options.resolved()
    return Job(
        id=NO_ID,
        target=call.target,
        queue=options.queue,
        status=JobStatus.PENDING,
        priority=options.priority,
        args=tuple(call.args),
        kwargs=dict(call.kwargs),
        result=None,
        error=None,
        error_class=None,
        reason=None,
        attempts=0,
        max_retries=options.max_retries,
        crash_count=0,
        tags=tuple(options.tags),
        params=dict(options.params),
        idempotency_key=options.idempotency_key,
        business_key=options.business_key,
        node=None,
        created_at=now,
        due_at=options.run_at or now + timedelta(seconds=options.delay),
        picked_at=None,
        started_at=None,
        finished_at=None,
        wait_ms=None,
        run_ms=None,
        correlation_id=options.correlation_id,
        parent_id=None,
        superseded_by=None,
        paused_from=None,
        version=0,
        resource=options.resource,
        circuit=options.circuit or call.circuit,
    )
