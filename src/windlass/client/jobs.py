"""Submitting calls and reading jobs: sync and async faces of the same plans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from windlass.client.handle import Following, StoredHandle
from windlass.client.results import Results
from windlass.client.views import attempt_of, job_of
from windlass.domain.identity import new_job_ids, parse_job_id
from windlass.domain.job import Attempt, Job, NewJob, Outcome, Placed
from windlass.domain.options import JobOptions
from windlass.errors import InvalidOptionError, JobNotFoundError, SerializationError
from windlass.settings import JobsSettings
from windlass.spi import Serializer
from windlass.stores import reading
from windlass.stores.database import Database
from windlass.stores.migrate import Readiness
from windlass.stores.notifier import Notifier
from windlass.submission.call import Call, JobHandle
from windlass.submission.codec import plain_arguments
from windlass.submission.registry import Registry
from windlass.submission.signature import CallSpec
from windlass.submission.submit import RowTemplate, Submitter
from windlass.submission.target import Known

Wake = Callable[[Sequence[tuple[str, int]]], None]

_MOST_CACHED = 512


class Jobs:
    """Jobs as seen from an application. What is stored is checked before anything is stored."""

    def __init__(
        self,
        database: Database,
        readiness: Readiness,
        registry: Registry,
        serializer: Serializer,
        settings: JobsSettings,
        results: Results,
        work: Notifier | None,
    ) -> None:
        self._database = database
        self._readiness = readiness
        self._registry = registry
        self._serializer = serializer
        self._settings = settings
        self._results = results
        self._submitter = Submitter(database, work)
        self._following = Following(database, readiness, results, self._decode)
        self._templates: dict[int, tuple[JobOptions, RowTemplate]] = {}

    # ------------------------------------------------------------------ submitting

    def rows(self, calls: Sequence[Call[Any]]) -> list[NewJob]:
        """Check and encode calls; nothing is stored."""
        return [self._row(job_id, call) for job_id, call in zip(new_job_ids(len(calls)), calls, strict=True)]

    def submit(self, rows: Sequence[NewJob]) -> list[Placed]:
        """Store rows, all or none; other processes are told of them."""
        self._readiness.ensure()
        return self._submitter.submit(rows)

    async def asubmit(self, rows: Sequence[NewJob]) -> list[Placed]:
        """Async twin of `submit`."""
        await self._readiness.aensure()
        return await self._submitter.asubmit(rows)

    def handles(self, calls: Sequence[Call[Any]], placed: Sequence[Placed]) -> list[JobHandle[Any]]:
        """Handles in the order of the calls."""
        following = self._following
        return [StoredHandle(place, following, call.spec.returns) for call, place in zip(calls, placed, strict=True)]

    def _row(self, job_id: str, call: Call[Any]) -> NewJob:
        if not isinstance(call, Call):
            raise InvalidOptionError(f"expected calls, e.g. charge.bind(42), got {call!r}; bind its arguments first")
        args = self._serializer.encode_arguments(call.spec, call.args, call.kwargs, self._settings.max_payload_bytes)
        return self._template(call.options).row(job_id, call.target, args)

    def _template(self, options: JobOptions) -> RowTemplate:
        """Made once per options object: thousands of calls of one job share it."""
        cached = self._templates.get(id(options))
        if cached is None or cached[0] is not options:
            if len(self._templates) >= _MOST_CACHED:
                self._templates.clear()
            template = RowTemplate.of(options.resolved(), self._settings.max_payload_bytes)
            cached = self._templates[id(options)] = (options, template)
        return cached[1]

    # ------------------------------------------------------------------ following

    def handle(self, job_id: UUID | str, spec: CallSpec | None = None) -> JobHandle[Any]:
        """A handle on a job stored earlier; whether it exists is found out when it is asked."""
        return StoredHandle(Placed(parse_job_id(job_id)), self._following, None if spec is None else spec.returns)

    def _decode(self, outcome: Outcome, returns: Any) -> Any:
        annotation = self._returns(outcome.target) if returns is None else returns
        return self._serializer.decode_result(outcome.result, annotation)

    def _returns(self, target: str) -> Any:
        resolution = self._registry.resolve(target)
        return resolution.spec.returns if isinstance(resolution, Known) else Any

    # ------------------------------------------------------------------ reading

    def get(self, job_id: UUID | str) -> Job:
        """One job as it is now."""
        key = parse_job_id(job_id)
        self._readiness.ensure()
        return self._job(key, self._database.read(reading.get, key))

    async def aget(self, job_id: UUID | str) -> Job:
        """Async twin of `get`."""
        key = parse_job_id(job_id)
        await self._readiness.aensure()
        return self._job(key, await self._database.aread(reading.get, key))

    def history(self, job_id: UUID | str) -> list[Attempt]:
        """Every attempt of a job, oldest first."""
        key = parse_job_id(job_id)
        self._readiness.ensure()
        return self._attempts(key, self._database.read(reading.history, key))

    async def ahistory(self, job_id: UUID | str) -> list[Attempt]:
        """Async twin of `history`."""
        key = parse_job_id(job_id)
        await self._readiness.aensure()
        return self._attempts(key, await self._database.aread(reading.history, key))

    def _job(self, job_id: str, stored: reading.StoredJob | None) -> Job:
        if stored is None:
            raise JobNotFoundError(UUID(job_id))
        return job_of(stored, self._arguments, self._result)

    def _arguments(self, target: str, text: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Typed where the target is known here, plain JSON elsewhere."""
        resolution = self._registry.resolve(target)
        if isinstance(resolution, Known):
            try:
                return self._serializer.decode_arguments(resolution.spec, text)
            except SerializationError:
                pass  # the signature has changed since: show what is stored
        return plain_arguments(text)

    def _result(self, target: str, text: str | None) -> Any:
        try:
            return self._serializer.decode_result(text, self._returns(target))
        except SerializationError:
            return self._serializer.decode_result(text, Any)

    def _attempts(self, job_id: str, rows: list[Sequence[Any]] | None) -> list[Attempt]:
        if rows is None:
            raise JobNotFoundError(UUID(job_id))
        return [attempt_of(row) for row in rows]
