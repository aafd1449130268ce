"""`JobResult`s of ended jobs, with the types of the target's annotations where the target is known here.

They are passed to callbacks and followers. Values that cannot be read are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from windlass.domain.ended import Ended
from windlass.domain.job import Payload
from windlass.domain.job_result import JobResult
from windlass.domain.states import JobStatus
from windlass.domain.tags import tags_of
from windlass.domain.transition import NO_FAILURE
from windlass.errors import SerializationError
from windlass.spi import Serializer
from windlass.submission.codec import plain_arguments
from windlass.submission.registry import Registry
from windlass.submission.signature import CallSpec
from windlass.submission.tagged import plain


class JobResults(NamedTuple):
    """Makes `JobResult`s for an application."""

    registry: Registry
    serializer: Serializer

    def of(self, job: Ended, payload: Payload, form: Callable[[Any], Any] = plain) -> JobResult:
        """Return how a job ended. Unless `form` is another one, its values can be stored without annotations."""
        spec, failure = self._spec(job.target), job.failure or NO_FAILURE
        args, kwargs = self._given(payload, spec, form)
        return JobResult(
            job_id=UUID(job.job_id),
            target=job.target,
            args=args,
            kwargs=kwargs,
            tags=tags_of(payload.tags),
            params=_params(payload.params),
            reason=job.reason,
            succeeded=job.status is JobStatus.SUCCEEDED,
            failed=job.status is JobStatus.FAILED,
            value=self._value_or_none(job, form),
            error=failure.error or None,
            error_class=failure.error_class or None,
            run_ms=job.run_ms,
            attempts=job.attempts,
        )

    def _spec(self, target: str) -> CallSpec | None:
        try:
            return self.registry.spec_of(target)
        except Exception:  # noqa: BLE001 - a policy of the user's
            return None

    def _given(
        self, payload: Payload, spec: CallSpec | None, form: Callable[[Any], Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the job's arguments by its signature; as stored if they no longer fit; none if they cannot be read."""
        try:
            if spec is not None:
                args, kwargs = self.serializer.decode_arguments(spec, payload.args)
                return tuple(map(form, args)), {name: form(value) for name, value in kwargs.items()}
        except Exception:  # noqa: BLE001, S110 - also users' code: serializers, validators
            pass
        try:
            return plain_arguments(payload.args)
        except (SerializationError, ValueError, TypeError, RecursionError):
            return (), {}

    def value(self, job: Ended, form: Callable[[Any], Any] = plain) -> Any:
        """Return what a job returned, with the types of its annotation; without them if it no longer fits.

        Built-in types keep their type for readers without an annotation; objects become dicts, unless `form`
        is another one. Raises what the serializer raises for what it cannot read.
        """
        spec = self._spec(job.target)
        if spec is not None:
            try:
                return form(self.serializer.decode_result(job.result, spec.returns))
            except Exception:  # noqa: BLE001, S110 - also users' code: serializers, validators
                pass
        return form(self.serializer.decode_result(job.result, Any))

    def _value_or_none(self, job: Ended, form: Callable[[Any], Any]) -> Any:
        try:
            return self.value(job, form)
        except Exception:  # noqa: BLE001 - the same
            return None


def as_it_is(value: Any) -> Any:
    """Return a value with its types: for code of this process."""
    return value


def _params(text: str | None) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any]) if text else {}
    except (ValueError, TypeError, RecursionError):
        return {}
