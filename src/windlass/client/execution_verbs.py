"""The verbs on one execution by its id: read, wait, move. Applications and handles share them."""

from __future__ import annotations

import re
from typing import Any, NamedTuple
from uuid import UUID

from windlass.client.answer_verbs import AnswerVerbs
from windlass.client.execution_views import ExecutionReader, status_of
from windlass.client.job_verbs import JobVerbs
from windlass.domain.execution import Execution, ExecutionStatus
from windlass.domain.identity import parse_job_id
from windlass.domain.states import JobStatus
from windlass.errors import JobCanceledError, JobFailedError, JobNotFoundError
from windlass.execution_errors import ExecutionCanceledError, ExecutionFailedError, ExecutionNotFoundError
from windlass.runtime.verbs import Verb
from windlass.stores.plans import execution_moves, execution_reads, executions, items
from windlass.stores.plans.execution_reads import FoundExecution
from windlass.submission.handle import Timeout

PAGE = 500
_OF_FLOWS = re.compile(r": it follows another job.*?\(not_released\)")


class OneExecutionVerbs(NamedTuple):
    """Verbs on one execution. One of another tenant looks as if it did not exist."""

    jobs: JobVerbs
    reader: ExecutionReader
    answers: AnswerVerbs

    def found(self, execution_id: UUID | str, tenant: str | None) -> Verb[FoundExecution]:
        """Read an execution of a tenant; None: of any."""
        key = parse_job_id(execution_id)
        found = (yield from self.jobs.access.read(execution_reads.get, [key])).get(key)
        if found is None or (tenant is not None and found.stored.tenant != tenant):
            raise ExecutionNotFoundError(key, tenant or "any")
        return found

    def get(self, execution_id: UUID | str, tenant: str | None) -> Verb[Execution]:
        """See `app.executions.get`."""
        yield from self.jobs.authorization.check("get", parse_job_id(execution_id))
        return self.reader.execution((yield from self.found(execution_id, tenant)))

    def status(self, execution_id: str, tenant: str) -> Verb[ExecutionStatus]:
        """Return the current status."""
        yield from self.jobs.authorization.check("get", execution_id)
        return status_of((yield from self.found(execution_id, tenant)))

    def join(self, execution_id: str, tenant: str, timeout: Timeout) -> Verb[ExecutionStatus]:
        """Wait for the end and return the status."""
        yield from self._wait(execution_id, tenant, timeout)
        return (yield from self.status(execution_id, tenant))

    def result(self, execution_id: str, tenant: str, timeout: Timeout) -> Verb[Any]:
        """Wait for the end and return the result."""
        yield from self.found(execution_id, tenant)
        try:
            return (yield from self.jobs.result(execution_id, None, timeout))
        except JobFailedError as error:
            status = yield from self.status(execution_id, tenant)
            described = (error.reason, error.error, error.error_class)
            raise ExecutionFailedError(error.job_id, status, *described) from None
        except JobCanceledError as error:
            raise ExecutionCanceledError(*error.args) from None
        except TimeoutError as error:
            raise (yield from self._timed_out(execution_id, tenant, error)) from None

    def _wait(self, execution_id: str, tenant: str, timeout: Timeout) -> Verb[JobStatus]:
        yield from self.found(execution_id, tenant)
        try:
            return (yield from self.jobs.join(execution_id, timeout))
        except TimeoutError as error:
            raise (yield from self._timed_out(execution_id, tenant, error)) from None
        except JobNotFoundError:
            raise ExecutionNotFoundError(execution_id, tenant) from None

    def _timed_out(self, execution_id: str, tenant: str, error: TimeoutError) -> Verb[TimeoutError]:
        status = yield from self.status(execution_id, tenant)
        text = str(error).replace("job ", "execution ", 1).replace("The job", "The execution")
        text = _OF_FLOWS.sub("", text)  # what a parked job means elsewhere
        return TimeoutError(f"{text} (status {status})")

    def items(self, execution_id: str, tenant: str, after: str) -> Verb[tuple[list[Any], str | None]]:
        """Read the next of its last items."""
        yield from self.jobs.authorization.check("get", execution_id)
        found = yield from self.found(execution_id, tenant)
        state = (yield from self.jobs.access.read(executions.load, [execution_id]))[execution_id]
        if not self.reader.may_have_items(found.stored):
            return [], None
        if not state.streams:
            value = self.reader.last_item(found.stored, state)
            return [] if value is None else [value], None
        page_range = (execution_id, state.stage, after, PAGE)
        page = yield from self.jobs.access.read(items.done, *page_range)
        values = [self.reader.value(found.stored, item.type, item.value) for item in page]
        return values, page[-1].path if len(page) == PAGE else None

    def cancel(self, execution_id: str, tenant: str) -> Verb[bool]:
        """Cancel it with all its items."""
        yield from self.found(execution_id, tenant)
        return (yield from self.jobs.cancel(execution_id))

    def pause(self, execution_id: str, tenant: str) -> Verb[bool]:
        """Pause it at its next boundary."""
        return (yield from self._steer("pause", execution_id, tenant))

    def resume(self, execution_id: str, tenant: str) -> Verb[bool]:
        """Resume it."""
        return (yield from self._steer("resume", execution_id, tenant))

    def _steer(self, action: str, execution_id: str, tenant: str) -> Verb[bool]:
        yield from self.jobs.authorization.check(action, execution_id)
        found = yield from self.found(execution_id, tenant)
        key = found.stored.id
        changed, work = yield from self.jobs.access.run(execution_moves.steer, [key], pause=action == "pause")
        if work:
            self.jobs.publisher.wakeups.new_work(work)
        return bool(changed)
