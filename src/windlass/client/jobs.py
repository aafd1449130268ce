"""Submitting calls, and handles on what was submitted: sync and async faces of the same plans."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from windlass.client.job_verbs import JobVerbs
from windlass.domain.ended import Ended
from windlass.domain.identity import new_job_ids, parse_job_id
from windlass.domain.job import NewJob, Placed
from windlass.domain.options import JobOptions
from windlass.errors import InvalidOptionError
from windlass.runtime.verbs import Request, Verb
from windlass.settings import JobsSettings
from windlass.spi import Serializer
from windlass.stores.access import Access
from windlass.stores.notifier import Notifier
from windlass.stores.plans import limits, moves
from windlass.submission.call import Call
from windlass.submission.callbacks import stored_callbacks
from windlass.submission.current_connection import connection_for
from windlass.submission.handle import JobHandle
from windlass.submission.registry import Registry
from windlass.submission.resources import checked_resources, resources_of
from windlass.submission.rows import RowTemplate
from windlass.submission.signature import CallSpec
from windlass.submission.submit import Submitter, levels_of
from windlass.submission.transactional import TransactionalSubmitter, given_connection, one_connection

R = TypeVar("R")

_MOST_CACHED = 512


class Submitted(NamedTuple):
    """What became of calls."""

    handles: list[JobHandle[Any]]
    work: list[tuple[str, int]]
    """Queues and levels that have new work from now on: none while the caller's transaction is open."""
    superseded: Sequence[Ended] = ()
    """Jobs that were canceled for them; not known while the caller's transaction is open."""


class Jobs:
    """Jobs as seen from an application. What is stored is checked before anything is stored."""

    def __init__(
        self,
        access: Access,
        registry: Registry,
        serializer: Serializer,
        settings: JobsSettings,
        verbs: JobVerbs,
        work: Notifier | None,
    ) -> None:
        self._access = access
        self._resources: set[str] = set()
        self._registry = registry
        self._serializer = serializer
        self._settings = settings
        self._submitter = Submitter(access.database, work)
        self._transactional = TransactionalSubmitter(access)
        self._verbs = verbs
        self._templates: dict[tuple[int, str | None], tuple[JobOptions, RowTemplate]] = {}

    def forget(self) -> None:
        """Nothing is known of the store any more: it was closed."""
        self._resources.clear()

    # ------------------------------------------------------------------ submitting

    def rows(self, calls: Sequence[Call[Any]]) -> list[NewJob]:
        """Check and encode calls; nothing is stored."""
        return [self._row(job_id, call) for job_id, call in zip(new_job_ids(len(calls)), calls, strict=True)]

    def own_row(self, call: Call[Any]) -> NewJob:
        """`rows` of one call for a plan that runs on a connection of ours only."""
        (row,) = self.rows([call])
        if given_connection(call.options) is not None:
            raise InvalidOptionError(
                "connection is for enqueue and enqueue_many, got it in replace(); leave it out there"
            )
        return row

    def submit(self, calls: Sequence[Call[Any]]) -> Verb[Submitted]:
        """Store calls, all or none; other processes are told of them."""
        rows = self.rows(calls)
        if not rows:
            return Submitted([], [])
        connection = one_connection([connection_for(call.options, self._registry) for call in calls])
        yield from self._verbs.authorization.check_calls(calls)
        if connection is not None:
            placed = yield from self._transactional.submit(connection, rows)
            return Submitted(self.handles(calls, placed), [])
        if asked := resources_of(rows) - self._resources:
            known = yield from self._access.read(limits.known_resources, sorted(asked))
            self._resources |= checked_resources(asked, known)
        yield from self._access.ready()
        placed = yield Request(self._submitter.submit, self._submitter.asubmit, (rows,))
        gone = _superseded(placed)
        superseded = (yield from self._access.read(moves.superseded, gone)) if gone else ()
        return Submitted(self.handles(calls, placed), levels_of(rows), superseded)

    def handles(self, calls: Sequence[Call[Any]], placed: Sequence[Placed]) -> list[JobHandle[Any]]:
        """Handles in the order of the calls."""
        verbs = self._verbs
        return [JobHandle(place, verbs, call.spec.returns) for call, place in zip(calls, placed, strict=True)]

    def _row(self, job_id: str, call: Call[Any]) -> NewJob:
        if not isinstance(call, Call):
            raise InvalidOptionError(f"expected calls, e.g. charge.bind(42), got {call!r}; bind its arguments first")
        args = self._serializer.encode_arguments(call.spec, call.args, call.kwargs, self._settings.max_payload_bytes)
        return self._template(call.options, call.circuit).row(job_id, call.target, args)

    def _template(self, options: JobOptions, marked_circuit: str | None) -> RowTemplate:
        """Made once per options object: thousands of calls of one job share it."""
        key = (id(options), marked_circuit)
        cached = self._templates.get(key)
        if cached is None or cached[0] is not options:
            resolved, most_bytes = options.resolved(), self._settings.max_payload_bytes
            callbacks = stored_callbacks(resolved, self._registry, most_bytes)
            template = RowTemplate.of(resolved, most_bytes, callbacks, marked_circuit)
            if given_connection(options) is not None:
                return template  # kept, it would keep the caller's connection
            if len(self._templates) >= _MOST_CACHED:
                self._templates.clear()
            cached = self._templates[key] = (options, template)
        return cached[1]

    # ------------------------------------------------------------------ following

    def handle(self, job_id: UUID | str, spec: CallSpec | None = None) -> JobHandle[Any]:
        """A handle on a job stored earlier; whether it exists is found out when it is asked."""
        return JobHandle(Placed(parse_job_id(job_id)), self._verbs, None if spec is None else spec.returns)


def _superseded(placed: Sequence[Placed]) -> list[str]:
    return [place.supersedes for place in placed if place.supersedes is not None]


def as_list(calls: Iterable[Call[R]]) -> list[Call[R]]:
    """Check what `enqueue_many` was given."""
    if isinstance(calls, Call):
        raise InvalidOptionError(
            "enqueue_many takes a list of calls, got a single one; write [call], or call.enqueue()"
        )
    return list(calls)
