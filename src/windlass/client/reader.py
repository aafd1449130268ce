"""Decoding of stored texts: by the target's annotations where it is known here, as plain JSON elsewhere."""

from __future__ import annotations

from typing import Any, NamedTuple

from windlass.client.views import job_of
from windlass.domain.job import Job, Outcome
from windlass.errors import SerializationError
from windlass.runtime.verbs import drive
from windlass.spi import Serializer
from windlass.stores.access import Access
from windlass.stores.plans import reads
from windlass.stores.plans.reads import StoredJob
from windlass.submission.codec import plain_arguments
from windlass.submission.registry import Registry
from windlass.submission.target import Known


class Reader(NamedTuple):
    """Decodes arguments and results of jobs."""

    registry: Registry
    serializer: Serializer

    def job(self, stored: StoredJob) -> Job:
        """Return a stored job as users see it."""
        return job_of(stored, self._arguments, self._result)

    def read(self, access: Access, job_id: str) -> Job | None:
        """Read a job on this thread, without authorization; return None if there is none."""
        stored = drive(access.read(reads.get, job_id))
        return None if stored is None else self.job(stored)

    def result(self, outcome: Outcome, returns: Any) -> Any:
        """Return a job's result, decoded by the annotation `returns` or, without one, by the target's."""
        annotation = self._returns(outcome.target) if returns is None else returns
        return self.serializer.decode_result(outcome.result, annotation)

    def _arguments(self, target: str, text: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
        resolution = self.registry.resolve(target)
        if isinstance(resolution, Known):
            try:
                return self.serializer.decode_arguments(resolution.spec, text)
            except SerializationError:
                pass  # the signature has changed since: show what is stored
        return plain_arguments(text)

    def _result(self, target: str, text: str | None) -> Any:
        try:
            return self.serializer.decode_result(text, self._returns(target))
        except SerializationError:
            return self.serializer.decode_result(text, Any)

    def _returns(self, target: str) -> Any:
        resolution = self.registry.resolve(target)
        return resolution.spec.returns if isinstance(resolution, Known) else Any
