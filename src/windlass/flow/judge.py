"""Judges conditions: calls the predicates of branches and guards, outside of any transaction.

Coroutine functions are awaited on the loop, others run on a thread. One that raises or takes too long cancels only its
own branch.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

from windlass import loggers
from windlass.domain.branches import OF_OUTCOME, OF_VALUE, Branch, Judgement, OpenGuard, PredicateError, asked_after
from windlass.domain.control_characters import one_line
from windlass.domain.ended import Ended
from windlass.domain.states import JobStatus
from windlass.domain.transition import Failure
from windlass.errors import SerializationError
from windlass.flow.job_results import JobResults, as_it_is
from windlass.runtime.failpoints import reached
from windlass.runtime.threads import BodyExit
from windlass.spi import ExecutorProvider, InstanceResolver, Invocation
from windlass.submission.predicates import Predicates
from windlass.submission.tagged import DroppedResult
from windlass.submission.target import Denied, Known, Unknown

logger = loggers.logger("windlass.flows")


class PredicateTimeoutError(Exception):
    """A predicate took longer than `flows.predicate_timeout`."""


class JudgeParts(NamedTuple):
    """What a judge needs of its node."""

    predicates: Predicates
    results: JobResults
    instances: InstanceResolver
    executors: ExecutorProvider
    describe: Callable[[BaseException], Failure]
    """Returns an error's text for storage: sanitised."""
    timeout: float
    """Seconds that one predicate may take."""
    most: int
    """How many jobs are judged at a time."""


class Judge:
    """Judges the branches of jobs that end on this node, and the guards of those that begin."""

    def __init__(self, parts: JudgeParts) -> None:
        self._parts = parts
        self._free = asyncio.Semaphore(parts.most)

    def unresolved(self, targets: Iterable[str]) -> Unknown | Denied | None:
        """Return the first of these predicates that cannot be called here; None: all are known.

        Raises `SerializationError` if the annotations of one cannot be resolved.
        """
        found = (self._parts.predicates.resolve(target) for target in targets)
        return next((one for one in found if not isinstance(one, Known)), None)

    async def judge(self, ended: Ended, branches: Sequence[Branch], judgements: dict[str, Judgement]) -> None:
        """Judge the branches of a job one by one. If it is cancelled, `judgements` has those made until then."""
        reached("judge.before")
        asked = asked_after(branches, ended.status)
        matched: set[int] = set()
        async with self._free:
            for branch in asked:
                if branch.choice in matched:
                    found = Judgement(holds=False)
                elif branch.predicate is None:
                    found = Judgement(holds=True)
                else:
                    about = OF_OUTCOME if branch.kind == "custom" else OF_VALUE
                    found = await self._call(branch.predicate, about, ended, branch.child_id)
                if branch.choice is not None and found.holds:
                    matched.add(branch.choice)
                judgements[branch.child_id] = found
        reached("judge.after")

    async def judge_guard(self, job_id: str, opened: OpenGuard) -> Judgement:
        """Judge the guard of a follower, whose parent has ended."""
        guard, subject = opened.guard, opened.subject
        if isinstance(subject, Ended) and not _asked_after(guard.about, subject.status):
            return Judgement(holds=False)
        async with self._free:
            for target in guard.unless:
                if (await self._call(target, guard.about, subject, job_id)).holds:
                    return Judgement(holds=False)
            if guard.predicate is None:
                return Judgement(holds=True)
            return await self._call(guard.predicate, guard.about, subject, job_id)

    async def _call(self, target: str, about: str, subject: object, child: str) -> Judgement:
        """Call one predicate. Raises nothing but its own cancellation."""
        calling = asyncio.ensure_future(self._answer(target, about, subject))
        try:
            done, _ = await asyncio.wait((calling,), timeout=self._parts.timeout)
        finally:
            if not calling.done():
                calling.cancel()
        if not done:
            answer: bool | BaseException = PredicateTimeoutError(
                f"{target} took longer than {self._parts.timeout:g} s (flows.predicate_timeout)"
            )
        else:
            answer = asyncio.CancelledError() if calling.cancelled() else calling.result()
        if isinstance(answer, bool):
            return Judgement(answer)
        failure = self._parts.describe(answer.error if isinstance(answer, BodyExit) else answer)
        logger.warning("the predicate %s failed, job %s is canceled: %s", target, child, one_line(failure.error))
        return Judgement(holds=False, error=PredicateError(failure.error, failure.error_class))

    async def _answer(self, target: str, about: str, subject: object) -> bool | BaseException:
        """Return what a predicate returns or raises: a SystemExit that is raised in a task would reach the loop."""
        try:
            return bool(await self._run(target, about, subject))
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever it raises, its branch is canceled
            return error

    async def _run(self, target: str, about: str, subject: object) -> Any:
        known = self._parts.predicates.resolve(target)
        if not isinstance(known, Known):
            raise SerializationError(known.error)
        function = known.ready(self._parts.instances)
        kind, asked = ("async", function) if known.spec.is_coroutine else ("thread", partial(_asked, function))
        argument = self._argument(about, subject)
        executor = self._parts.executors.executor(kind)
        answer = await executor.run(Invocation(target, asked, (argument,), {}, self._parts.timeout))
        return await answer if inspect.isawaitable(answer) else answer

    def _argument(self, about: str, subject: object) -> object:
        """Return what a predicate is called with."""
        if not isinstance(subject, Ended) or about not in _OF_JOBS:
            return subject
        assert subject.payload is not None
        if about == OF_OUTCOME:
            return self._parts.results.of(subject, subject.payload, as_it_is)
        value = self._parts.results.value(subject, as_it_is)
        if isinstance(value, DroppedResult):
            raise SerializationError(f"job {subject.job_id} ({subject.target}) succeeded, but {value.reason}")
        return value


def _asked_after(about: str, status: JobStatus) -> bool:
    """Return whether a guard about a job is evaluated after this end of it: after a cancel none is."""
    return status is JobStatus.SUCCEEDED or (status is JobStatus.FAILED and about != OF_VALUE)


def _asked(predicate: Callable[[Any], Any], argument: object) -> Any:
    """Return whether a plain predicate holds, or the awaitable that it has returned.

    Runs on its thread: testing the truth of a value may run the user's code too, such as a query.
    """
    answer = predicate(argument)
    return answer if inspect.isawaitable(answer) else bool(answer)


_OF_JOBS: Collection[str] = frozenset({OF_OUTCOME, OF_VALUE})
