"""Results as arguments of followers: read when a follower is about to run, and only if it asks for them.

A result that cannot be passed on (it was not kept, does not have the part that is asked for, or those of a group are
too large) fails the follower as `poison_payload`; the error names the parent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from windlass.domain.dependencies import nested
from windlass.domain.ended import Ended
from windlass.domain.job import Claim, Payload
from windlass.errors import SerializationError
from windlass.feature import ArgumentSource, Feature
from windlass.flow.job_results import JobResults
from windlass.spi import Serializer
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan
from windlass.stores.plans import flow_results
from windlass.stores.plans.flow_results import ResultSource, Wanted
from windlass.submission.by_name import ANY_CALL
from windlass.submission.codec import NO_LIMIT
from windlass.submission.registry import Registry
from windlass.submission.stored_options import FLOW_IN_TEXT, StoredFlow, from_text
from windlass.submission.tagged import DroppedResult
from windlass.submission.target import Known
from windlass.submission.templates import Mark, filled


def feature(registry: Registry, serializer: Serializer, max_joined_bytes: int) -> Feature:
    """Return the passing of results as a feature."""
    arguments = Arguments(registry, serializer, max_joined_bytes)
    return Feature("results of flows", arguments=ArgumentSource(takes_results, arguments.read, arguments.fill))


def takes_results(payload: Payload) -> bool:
    """Return whether a job takes results of others; most options are not decoded for it."""
    return isinstance(payload.options, str) and '"marks"' in payload.options and _marked(payload) is not None


def _marked(payload: Payload) -> StoredFlow | None:
    options = payload.options
    if not isinstance(options, str) or FLOW_IN_TEXT not in options:
        return None
    try:
        flow = from_text(options).flow
    except SerializationError:  # damaged: it fails when it is read again
        return None
    return flow if flow is not None and flow.marks else None


class Arguments:
    """Fills in the arguments of followers."""

    def __init__(self, registry: Registry, serializer: Serializer, max_joined_bytes: int) -> None:
        self._results = JobResults(registry, serializer)
        self._serializer = serializer
        self._max_bytes = max_joined_bytes

    def read(self, dialect: Dialect, payloads: Mapping[str, Payload]) -> Plan[dict[str, ResultSource]]:
        """Read the results that followers take."""
        wanted = [
            Wanted(job, flow.of_group, Mark.OUTCOME.value in flow.marks.values())
            for job, payload in payloads.items()
            if (flow := _marked(payload)) is not None
        ]
        return (yield from flow_results.read(dialect, wanted, self._max_bytes))

    def fill(self, claim: Claim, payload: Payload, sources: Mapping[str, ResultSource]) -> Payload:
        """Return the payload with results as arguments."""
        flow, source = _marked(payload), sources.get(claim.job_id)
        if flow is None:
            return payload
        if source is None:
            raise SerializationError(f"the results that job {claim.job_id} takes are missing: it follows no job now")
        if source.joined_bytes > self._max_bytes:
            raise SerializationError(
                f"the results of group {source.parent_id} take {source.joined_bytes:,} bytes as JSON together, more "
                f"than the limit of {self._max_bytes:,} (flows.max_joined_bytes); store them elsewhere and return ids"
            )
        try:
            args = self._arguments(payload, flow, source)
            self._check(claim.target, args)
            return payload._replace(args=args)
        except Exception as error:  # noqa: BLE001 - users' code too; and damaged rows
            what = "group" if flow.of_group else "job"
            why = error if isinstance(error, SerializationError) else f"{type(error).__name__}: {error}"
            raise SerializationError(f"the result of {what} {source.parent_id} cannot be passed on: {why}") from None

    def _arguments(self, payload: Payload, flow: StoredFlow, source: ResultSource) -> str:
        if source.missing:
            raise SerializationError(f"{source.missing} of its results are missing; they were purged, or are damaged")
        values: dict[Mark, Any] = {}
        for mark in {Mark(name) for name in flow.marks.values()}:
            found = [self._outcome(job) if mark is Mark.OUTCOME else self._value(job) for job in source.jobs]
            values[mark] = nested(found, flow.shape) if flow.of_group else found[0]
        try:
            args, kwargs = msgspec.json.decode(payload.args)
        except (ValueError, TypeError, RecursionError) as error:
            raise SerializationError(f"the stored arguments are damaged: {error}") from None
        return self._serializer.encode_arguments(
            ANY_CALL, *filled(args, kwargs, flow.marks, flow.paths, values), NO_LIMIT
        )

    def _check(self, target: str, args: str) -> None:
        """Raise if the arguments do not fit the follower's signature, while it is known whose result they are."""
        resolution = self._results.registry.resolve(target)
        if isinstance(resolution, Known):
            self._serializer.decode_arguments(resolution.spec, args)

    def _outcome(self, job: Ended) -> Any:
        assert job.payload is not None
        return self._results.of(job, job.payload)

    def _value(self, job: Ended) -> Any:
        value = self._results.value(job)
        if isinstance(value, DroppedResult):
            raise SerializationError(f"job {job.job_id} ({job.target}) succeeded, but {value.reason}")
        return value
