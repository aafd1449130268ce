"""From calls to stored jobs: encode, authorize, store in our transaction or the caller's, return handles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from windlass.domain.ended import Effects, Ended
from windlass.domain.identity import parse_job_id
from windlass.domain.job import NewJob, SubmittedJob
from windlass.errors import InvalidOptionError
from windlass.runtime.local_node import LocalNode
from windlass.runtime.verbs import Verb
from windlass.settings import JobsSettings
from windlass.spi import Serializer
from windlass.stores.access import Access
from windlass.stores.ending import FollowUps
from windlass.stores.plans import limits, replacement
from windlass.submission.authorization import Authorization
from windlass.submission.batch_handle import BatchVerbs
from windlass.submission.call import Call, Flow, calls_of
from windlass.submission.cascades import carry_out
from windlass.submission.current_connection import connection_for, given_connection, one_connection
from windlass.submission.encoder import CallEncoder
from windlass.submission.flow_layout import answering_call
from windlass.submission.group_commit import GroupCommit, levels_of
from windlass.submission.handle import HandleVerbs, JobHandle
from windlass.submission.registry import Registry
from windlass.submission.resources import checked_resources, resources_of
from windlass.submission.signature import CallSpec
from windlass.submission.transactional import CallerTransactions


class Inline(Protocol):
    """Runs stored jobs before `enqueue` returns, for tests without a worker."""

    uncommitted: bool
    """Whether jobs were stored in transactions of the test, which are visible once it has committed."""

    def run(self) -> None:
        """Run due jobs."""

    async def arun(self) -> None:
        """Async twin of `run`."""


class SubmissionParts(NamedTuple):
    """The parts that a submitter uses to store jobs in one store."""

    access: Access
    authorization: Authorization
    commits: GroupCommit
    caller_transactions: CallerTransactions
    verbs: HandleVerbs
    batch_verbs: BatchVerbs
    local_node: LocalNode
    publish: Callable[[Sequence[Ended], Effects], object]
    """Publishes jobs that were replaced, after the commit."""
    follow_ups: FollowUps
    inline: Inline | None
    known_resources: set[str]
    """Resources seen in the store."""


class Submitter:
    """Stores calls of one application; all of them or none."""

    def __init__(
        self, registry: Registry, serializer: Serializer, settings: JobsSettings, parts: Callable[[], SubmissionParts]
    ) -> None:
        self.registry = registry
        self.encoder = CallEncoder(registry, serializer, settings.max_payload_bytes)
        self._parts = parts
        """Returns the parts of the current store, which `windlass.testing` exchanges."""

    def submit(self, calls: Sequence[Call[Any] | Flow[Any]]) -> Verb[list[JobHandle[Any]]]:
        """Store calls and flows and return handles in their order; workers are woken."""
        rows = self.encoder.rows(calls)
        if not rows:
            return []
        parts = self._parts()
        connection = one_connection([self._connection(call) for call in calls])
        yield from parts.authorization.check_calls(single_calls(calls))
        if connection is None:
            submitted = yield from store_rows(parts, rows)
        else:
            submitted = yield from parts.caller_transactions.submit(connection, rows)
            if parts.inline is not None:
                parts.inline.uncommitted = True
        return [JobHandle(one, parts.verbs, _returns(call)) for call, one in zip(calls, submitted, strict=True)]

    def _connection(self, call: Call[Any] | Flow[Any]) -> Any:
        """Return the connection of a call, or the one that some or all calls of a flow have."""
        if isinstance(call, Call):
            return connection_for(call.options, self.registry)
        found = [connection_for(one.options, self.registry) for one in calls_of(call)]
        return one_connection([one for one in found if one is not None])

    def row(self, call: Call[Any]) -> NewJob:
        """Return the row that a call would be stored as."""
        (row,) = self.encoder.rows([call])
        return row

    def replace(self, job_id: UUID | str, call: Call[Any]) -> Verb[JobHandle[Any]]:
        """Store a call in place of a job that has not started."""
        if not isinstance(call, Call):
            raise InvalidOptionError(
                f"a job is replaced by one call, e.g. charge.bind(42), got a {type(call).__name__}; cancel the job and "
                "enqueue the flow"
            )
        (row,) = self.encoder.rows([call])
        if given_connection(call.options) is not None:
            raise InvalidOptionError(
                "connection is for enqueue and enqueue_many, got it in replace(); leave it out there"
            )
        parts = self._parts()
        yield from parts.authorization.check("replace", job_id)
        yield from parts.authorization.check_calls([call])
        replaced = yield from parts.access.run(replacement.replace, parse_job_id(job_id), row, parts.follow_ups)
        parts.publish(replaced.old.ended, replaced.old.effects)
        yield from carry_out(parts.access, parts.publish, replaced.old.effects.unfinished, parts.follow_ups)
        parts.local_node.new_work(levels_of([row]))
        return JobHandle(replaced.new, parts.verbs, call.spec.returns)

    def handle(self, job_id: UUID | str, spec: CallSpec | None = None) -> JobHandle[Any]:
        """Return a handle on a job stored earlier; whether it exists is checked when the handle is used."""
        return JobHandle(
            SubmittedJob(parse_job_id(job_id)), self._parts().verbs, None if spec is None else spec.returns
        )


def single_calls(calls: Sequence[Call[Any] | Flow[Any]]) -> list[Call[Any]]:
    """Return every call, those of flows one by one."""
    return [one for call in calls for one in ((call,) if isinstance(call, Call) else calls_of(call))]


def _returns(call: Call[Any] | Flow[Any]) -> Any:
    return call.spec.returns if isinstance(call, Call) else answering_call(call).spec.returns


def check_resources(parts: SubmissionParts, rows: Sequence[NewJob]) -> Verb[None]:
    """Raise if a row needs a resource that is not configured."""
    if asked := resources_of(rows) - parts.known_resources:
        known = yield from parts.access.read(limits.known_resources, sorted(asked))
        parts.known_resources.update(checked_resources(asked, known))


def store_rows(parts: SubmissionParts, rows: Sequence[NewJob]) -> Verb[list[SubmittedJob]]:
    """Store rows in our transaction, and wake workers."""
    yield from check_resources(parts, rows)
    submitted = yield from parts.commits.submit(rows)
    parts.local_node.new_work(levels_of(rows))
    if parts.inline is not None:
        yield parts.inline.run, parts.inline.arun, ()
    return submitted
