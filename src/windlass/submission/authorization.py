"""Authorization: every verb that reads or moves jobs for a caller checks here first.

What the engine does by itself (claims, retries, callbacks, recovery) has no principal and is never checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple, TypeVar
from uuid import UUID

from windlass import loggers
from windlass.context import JobContext, current_context
from windlass.domain.dead_letter import DeadLetter
from windlass.domain.identity import parse_job_id
from windlass.domain.job import Job
from windlass.domain.reject import Reject
from windlass.domain.states import JobStatus
from windlass.errors import NotAuthorizedError
from windlass.runtime.verbs import Verb, off_loop
from windlass.spi import Authorizer, Clock
from windlass.submission.call import Call

logger = loggers.logger("windlass.authorization")

PROGRAM_NAME: Final = "the program itself"
NO_ID: Final = UUID(int=0)
"""The id of a job that is about to be enqueued."""
LONGEST_NAME: Final = 100

JobOrId = Job | UUID | str | None
V = TypeVar("V", Job, DeadLetter, Reject)


class _PrincipalScope(NamedTuple):
    principal: object
    within: JobContext | None
    """The job whose body set it. Bodies act for themselves, not for the principal that enqueued their job."""


_acting: ContextVar[_PrincipalScope | None] = ContextVar("windlass_acting", default=None)
_asking: ContextVar[bool] = ContextVar("windlass_asking", default=False)
"""Whether an authorizer is being called: what it looks up for its decision is not checked."""


def acting_principal() -> object:
    """Return the principal the application acts for here; None: for the program itself."""
    acting = _acting.get()
    return None if acting is None or acting.within is not current_context.get() else acting.principal


class Authorization:
    """Calls the authorizer. Without one everything is allowed, at no cost; a broken one allows nothing."""

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

    @property
    def is_asked(self) -> bool:
        """Whether there is an authorizer to ask."""
        return self._authorizer is not None

    def check(self, action: str, job: JobOrId = None) -> Verb[None]:
        """Raise `NotAuthorizedError` unless the acting principal may do this, to this job if there is one."""
        if self._authorizer is not None:  # may query a database: not on a loop
            yield from off_loop(self._check, action, job)

    def check_calls(self, calls: Sequence[Call[Any]]) -> Verb[None]:
        """Raise unless every one of these calls may be enqueued."""
        if self._authorizer is not None:
            yield from off_loop(self._check_calls, calls)

    def visible(self, items: list[V]) -> Verb[list[V]]:
        """Return the items of a page whose jobs the principal may read."""
        return items if self._authorizer is None else (yield from off_loop(self._visible, items))

    def permitted(self, action: str, ids: Sequence[UUID]) -> Verb[frozenset[UUID]]:
        """Return those of these jobs to which the principal may do this."""
        wanted = frozenset(ids)
        return wanted if self._authorizer is None else (yield from off_loop(self._permitted, action, wanted))

    def _permitted(self, action: str, ids: frozenset[UUID]) -> frozenset[UUID]:
        return frozenset(one for one in ids if self._refusal(action, self._read(str(one))) is None)

    def _check(self, action: str, job: JobOrId) -> None:
        found = job if isinstance(job, Job) or job is None else self._read(parse_job_id(job))
        refusal = self._refusal(action, found)
        if refusal is not None:
            job_id = job.id if isinstance(job, Job) else None if job is None else UUID(str(job))
            error = NotAuthorizedError(self._name(), action, None if job_id == NO_ID else job_id, refusal)
            logger.info("refused: %s", error)
            raise error

    def _check_calls(self, calls: Sequence[Call[Any]]) -> None:
        now = self._clock.now()
        for call in calls:
            self._check("enqueue", _job_to_come(call, now))

    def _visible(self, items: list[V]) -> list[V]:
        return [item for item in items if self._refusal("get", self._job_of(item)) is None]

    def _job_of(self, item: Job | DeadLetter | Reject) -> Job | None:
        if isinstance(item, Job):
            return item
        return self._read(item.execution_id if isinstance(item, Reject) else str(item.job_id))

    def _refusal(self, action: str, job: Job | None) -> str | None:
        """Return why the action is refused; None if it is allowed. Any error refuses."""
        if self._authorizer is None or _asking.get():
            return None
        token = _asking.set(True)
        try:
            answer: object = self._authorizer.may(acting_principal(), action, job)
        except Exception as error:  # noqa: BLE001 - users' code
            problem = f"the authorizer raised {type(error).__name__}"
        else:
            if isinstance(answer, bool):
                return None if answer else "the authorizer refused"
            problem = f"the authorizer returned {type(answer).__name__}, not True or False"
        finally:
            _asking.reset(token)
        logger.error("%s for action %r, which is refused; fix the authorizer", problem, action)
        return problem

    def name(self) -> str | None:
        """Return the principal's name as it may be stored; None: the program itself."""
        return None if acting_principal() is None else self._name()

    def _name(self) -> str:
        principal = acting_principal()
        try:
            return PROGRAM_NAME if principal is None else self._redact(str(principal))[:LONGEST_NAME]
        except Exception:  # noqa: BLE001 - users' class; it must not turn a refusal into something else
            return type(principal).__name__


@contextmanager
def acting_as(principal: object) -> Iterator[None]:
    """Use this principal for the authorizer in the current context, and in tasks started there."""
    token = _acting.set(_PrincipalScope(principal, current_context.get()))
    try:
        yield
    finally:
        _acting.reset(token)


def _job_to_come(call: Call[Any], now: datetime) -> Job:
    """Return the job that a call would become, so that it can be authorized before it is stored."""
    options = call.options.resolved()
    return Job(
        id=NO_ID,
        target=call.target,
        queue=options.queue,
        status=JobStatus.PENDING if call.wait is None else JobStatus.WAITING,
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
