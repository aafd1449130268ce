"""The verbs on one job by its id: read, explain, wait, move. Applications and handles share them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from windlass.client import commits
from windlass.client.batch_views import archived_progress, refuse_archived
from windlass.client.filters import checked_limit
from windlass.client.flow_views import graph_of
from windlass.client.reader import Reader
from windlass.client.results import Results
from windlass.client.views import attempt_of, line_of
from windlass.client.waits import outcome_of, outcome_within_job, refuse_on_a_loop, soon
from windlass.context import current_context
from windlass.domain.batch import BATCH_TARGET, BatchProgress
from windlass.domain.durations import seconds
from windlass.domain.ended import Unfinished
from windlass.domain.explanation import Explanation, explain
from windlass.domain.flow_graph import FlowGraph
from windlass.domain.identity import parse_job_id
from windlass.domain.job import Attempt, Job, Outcome
from windlass.domain.progress import LogLine, position_of
from windlass.domain.states import TERMINAL, JobStatus, Move
from windlass.errors import JobCanceledError, JobFailedError, JobNotFoundError, ResultDroppedError
from windlass.publisher import Publisher
from windlass.runtime.failpoints import reached
from windlass.runtime.verbs import Verb
from windlass.stores.access import Access
from windlass.stores.database import PlanFunction
from windlass.stores.ending import FollowUps, MovedJobs
from windlass.stores.plans import batches, explanations, flow_graphs, moves, operations, progress_reports, reads
from windlass.submission.authorization import Authorization
from windlass.submission.cascades import carry_out
from windlass.submission.handle import Timeout
from windlass.submission.submitter import Inline
from windlass.submission.tagged import DroppedResult

T = TypeVar("T")

EXPLAIN_WITHIN = 1.0
"""Longest time in seconds to find out what holds a job back, after a wait has timed out."""


class JobVerbs(NamedTuple):
    """Verbs on one job. Those that read raise `JobNotFoundError` for an unknown id, those that move return False."""

    access: Access
    authorization: Authorization
    publisher: Publisher
    follow_ups: FollowUps
    reader: Reader
    results: Results
    slots_taken: Callable[[], int | None]
    """Number of slots of this process's worker, if all of them are taken; else None."""
    inline: Inline | None = None

    # ------------------------------------------------------------------ reading

    def get(self, job_id: UUID | str) -> Verb[Job]:
        """See `app.get`."""
        return self.reader.job((yield from self._read("get", job_id, reads.get)))

    def history(self, job_id: UUID | str) -> Verb[list[Attempt]]:
        """See `app.history`."""
        return [attempt_of(row) for row in (yield from self._read("history", job_id, reads.history))]

    def explain(self, job_id: UUID | str) -> Verb[Explanation]:
        """See `app.explain`."""
        return explain(*(yield from self._read("explain", job_id, explanations.waiting_job)))

    def graph(self, job_id: UUID | str) -> Verb[FlowGraph]:
        """See `app.graph`."""
        return graph_of(*(yield from self._read("graph", job_id, flow_graphs.flow_jobs)))

    def progress(self, job_id: UUID | str) -> Verb[BatchProgress]:
        """See `BatchHandle.progress`."""
        key = parse_job_id(job_id)
        yield from self.authorization.check("get", key)
        found = yield from self.access.read(batches.state, key)
        if found is not None:
            return BatchProgress.of(found.counts)
        stored = yield from self.access.read(reads.outcomes, [key])
        if not stored or stored[0].target != BATCH_TARGET:
            raise JobNotFoundError(UUID(key))
        return archived_progress(stored[0].result)

    def log_lines(self, job_id: UUID | str, after: LogLine | str | None, limit: int) -> Verb[list[LogLine]]:
        """See `app.log_lines`."""
        wanted = (position_of(after), checked_limit(limit))
        return [line_of(row) for row in (yield from self._read("log_lines", job_id, progress_reports.lines, *wanted))]

    def _read(self, action: str, job_id: UUID | str, plan: PlanFunction[..., T | None], *args: Any) -> Verb[T]:
        key = parse_job_id(job_id)
        yield from self.authorization.check(action, key)
        found = yield from self.access.read(plan, key, *args)
        if found is None:
            raise JobNotFoundError(UUID(key))
        return found

    # ------------------------------------------------------------------ moving

    def cancel(self, job_id: UUID | str) -> Verb[bool]:
        """See `app.cancel`."""
        key = yield from self._allowed("cancel", job_id)
        moved = yield from self.access.run(moves.cancel, [key], self.follow_ups)
        return (yield from self.publish(moved)) > 0

    def pause(self, job_id: UUID | str) -> Verb[bool]:
        """See `app.pause`."""
        key = yield from self._allowed("pause", job_id)
        moved = yield from self.access.run(operations.pause, [key])
        yield from self._carry_out(moved.unfinished)
        return self.publisher.paused(moved.jobs) > 0

    def resume(self, job_id: UUID | str) -> Verb[bool]:
        """See `app.resume`."""
        key = yield from self._allowed("resume", job_id)
        moved = yield from self.access.run(operations.resume, [key])
        yield from self._carry_out(moved.unfinished)
        return self.publisher.resumed(moved.jobs) > 0

    def retry(self, job_id: UUID | str) -> Verb[bool]:
        """See `app.retry`."""
        key = yield from self._allowed("retry", job_id)
        run_by = (self.access, self.publisher, self.follow_ups)
        moved = yield from commits.revive(*run_by, moves.retry, [key], self.follow_ups)
        if not moved.ended:
            return (yield from self._retry_failed(key)) > 0
        return (yield from self.publish(moved)) > 0

    def retry_failed(self, job_id: UUID | str) -> Verb[int]:
        """See `BatchHandle.retry_failed`."""
        return (yield from self._retry_failed((yield from self._allowed("retry", job_id)), must_exist=True))

    def _retry_failed(self, batch_id: str, *, must_exist: bool = False) -> Verb[int]:
        unfinished = yield from self.access.run(operations.retry_failed, batch_id)
        if unfinished is not None:
            return (yield from self._carry_out(unfinished))
        if (yield from self.access.read(batches.state, batch_id)) is None:
            found = yield from self.access.read(reads.outcomes, [batch_id])
            refuse_archived(batch_id, found[0] if found else None, must_exist=must_exist)
        return 0

    def _carry_out(self, unfinished: Unfinished) -> Verb[int]:
        return (yield from carry_out(self.access, self.publisher.publish, unfinished, self.follow_ups))

    def _allowed(self, action: str, job_id: UUID | str) -> Verb[str]:
        key = parse_job_id(job_id)
        yield from self.authorization.check(action, key)
        return key

    def publish(self, moved: MovedJobs) -> Verb[int]:
        """Publish jobs that a verb has ended or revived; answers how many they are."""
        reached("cancel.after_commit", lambda: any(job.move is Move.CANCEL for job in moved.ended))
        return (yield from commits.publish(self.access, self.publisher, moved, self.follow_ups))

    # ------------------------------------------------------------------ awaiting

    def status(self, job_id: str) -> Verb[JobStatus]:
        """Return the current status."""
        yield from self.authorization.check("get", job_id)
        return (yield from self._outcome(job_id)).status

    def join(self, job_id: str, timeout: Timeout) -> Verb[JobStatus]:
        """Wait for the job to end and return its status."""
        return (yield from self._wait(job_id, timeout, "join")).status

    def result(self, job_id: str, returns: Any, timeout: Timeout) -> Verb[Any]:
        """Wait for the job to end and return its result."""
        outcome = yield from self._wait(job_id, timeout, "result")
        if outcome.status is JobStatus.FAILED:
            failure = (outcome.reason or "", outcome.error or "", outcome.error_class or "")
            raise JobFailedError(UUID(job_id), *failure)
        if outcome.status is JobStatus.CANCELED:
            raise JobCanceledError(UUID(job_id), outcome.reason or "canceled")
        value = self.reader.result(outcome, returns)
        if isinstance(value, DroppedResult):
            raise ResultDroppedError(UUID(job_id), value.reason)
        return value

    def _wait(self, job_id: str, timeout: Timeout, verb: str) -> Verb[Outcome]:
        limit = None if timeout is None else seconds(timeout, "timeout")
        yield from refuse_on_a_loop(verb)
        yield from self.authorization.check("get", job_id)
        if self.inline is not None and self.inline.uncommitted:
            yield self.inline.run, self.inline.arun, ()
        future = self.results.expect(job_id)
        try:
            outcome = yield from self._outcome(job_id)
            if outcome.status in TERMINAL:
                return outcome
            context = current_context.get()
            if context is not None:
                return (yield from outcome_within_job(future, limit, context, outcome, self.slots_taken))
            return (yield from outcome_of(future, limit))
        except TimeoutError:
            found = (yield from soon(EXPLAIN_WITHIN, partial(self.explain, job_id))) if limit else None
            raise TimeoutError(_not_finished(job_id, limit, found)) from None
        finally:
            self.results.forget(job_id, future)

    def _outcome(self, job_id: str) -> Verb[Outcome]:
        for outcome in (yield from self.access.read(reads.outcomes, [job_id])):
            return outcome
        raise JobNotFoundError(UUID(job_id))


def _not_finished(job_id: str, limit: float | None, found: Explanation | None) -> str:
    why = "" if found is None else f": {found.message} ({found.code})"
    return f"job {job_id} did not finish within {limit:g} s{why}. The job is not affected; you can wait again"
