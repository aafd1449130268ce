"""The pipelines of an application that subscribe to publications, and the executions that hand-offs become there."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from windlass import loggers
from windlass.domain.ended import Effects, Ended
from windlass.domain.execution import PREFIX, is_execution
from windlass.domain.identity import new_job_id
from windlass.domain.pipeline_summary import version_key
from windlass.domain.publication import PIPELINE, FailedHandoff, SubscriptionRow, short_reason
from windlass.errors import SerializationError
from windlass.pipelines.definition import Definition
from windlass.pipelines.execution_submitter import SubmitOptions, new_submission
from windlass.pipelines.item_values import Values
from windlass.pipelines.pipeline import AppPipeline
from windlass.runtime.service import Bell
from windlass.spi import Serializer
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan
from windlass.stores.plans.handoff_backlog import WaitingHandoff
from windlass.stores.plans.handoffs import AdmittedItem
from windlass.submission.signature import call_spec

logger = loggers.logger("windlass.publication")


class Subscriber(NamedTuple):
    """A pipeline of this application that subscribes to a publication."""

    publication: str
    definition: Definition
    values: Values

    @property
    def name(self) -> str:
        """The name of the pipeline, which all of its versions share."""
        return self.definition.name

    @property
    def subscription(self) -> SubscriptionRow:
        """The stored form of the subscription."""
        return SubscriptionRow(self.publication, self.name, PIPELINE, self.definition.options.max_in_flight)

    @property
    def config(self) -> str:
        """What else is stored of it."""
        return json.dumps({"version": self.definition.version})

    def admitted(self, payload: str, key: str, tenant: str, correlation_id: str, handoff_id: str) -> AdmittedItem:
        """Return the execution that an item becomes, checked as a submission is, or why it is refused."""
        try:
            value = self.values.decode(0, payload)
            options = SubmitOptions(key, tenant, correlation_id, handoff_id)
            made = new_submission(self.definition, self.values, new_job_id(), value, options, payload)
        except Exception as error:  # noqa: BLE001 - a serializer of the user, too; the item waits for its next try
            return AdmittedItem(handoff_id, None, short_reason(f"{type(error).__name__}: {error}"))
        return AdmittedItem(handoff_id, made)

    def readmitted(self, waiting: WaitingHandoff) -> AdmittedItem:
        """Return the same for a hand-off of the backlog."""
        given = (waiting.payload, waiting.key, waiting.tenant, waiting.correlation_id)
        return self.admitted(*given, waiting.id)


class Subscribers:
    """All pipelines of one application that subscribe, by what is declared now."""

    def __init__(
        self,
        pipelines: Callable[[], Iterable[AppPipeline]],
        wake_remote: Callable[[Collection[tuple[str, str]]], None] = lambda subscriptions: None,
    ) -> None:
        self._pipelines = pipelines
        self.bell = Bell()
        """Wakes what admits from the backlog of this process: a subscriber may have room."""
        self.wake_remote = wake_remote
        """Called after a commit with the publications and subscribers outside that have new hand-offs."""

    @property
    def names(self) -> Mapping[str, Sequence[str]]:
        """The names of subscribers, by publication."""
        found: dict[str, list[str]] = {}
        for pipeline in self._pipelines():
            if pipeline.options.subscribe is not None:
                found.setdefault(pipeline.options.subscribe, []).append(pipeline.name)
        return found

    def of(self, publication: str | None = None) -> list[Subscriber]:
        """Return the subscribers of a publication, or of all: each with its newest version."""
        newest: dict[tuple[str, str], AppPipeline] = {}
        for pipeline in self._pipelines():
            name = pipeline.options.subscribe
            if name is None or publication not in (None, name):
                continue
            present = newest.get((name, pipeline.name))
            if present is None or version_key(present.version) < version_key(pipeline.version):
                newest[name, pipeline.name] = pipeline
        return [Subscriber(name, one.definition, one.values) for (name, _), one in sorted(newest.items())]

    def frees_room(self, ended: Ended) -> bool:
        """Return whether a job is an execution of a pipeline whose end may make room for others."""
        return is_execution(ended.target) and any(
            pipeline.options.max_in_flight is not None and ended.target.startswith(f"{PREFIX}{pipeline.name}@")
            for pipeline in self._pipelines()
        )

    def room_freed(self, dialect: Dialect, ended: Sequence[Ended]) -> Plan[Effects]:
        """Wake what admits from the backlog after the commit; no statement."""
        del dialect, ended
        yield from ()
        return Effects(calls=(self.bell.ring,))


def log_failures(failures: Sequence[FailedHandoff]) -> None:
    """Log each failed hand-off."""
    for one in failures:
        logger.warning(
            "publication %s: the hand-off with key %r (tenant %s) to subscriber %s has failed: %s; %s",
            *(one.publication, one.key, one.tenant, one.subscriber, one.reason),
            "it is rejected, and not tried again" if one.final else "it is tried again",
        )


# ------------------------------------------------------------------ payloads


def _value(item: Any = None) -> None:
    del item


_SHAPE: Final = call_spec(_value)


def payload_of(serializer: Serializer, data: Any, limit: int) -> str:
    """Return data from outside as the payload of a hand-off."""
    return serializer.encode_arguments(_SHAPE, (data,), {}, limit)


def json_of_payload(serializer: Serializer, payload: str) -> str:
    """Return the payload of a hand-off as plain JSON, for destinations outside of the database."""
    args, _ = serializer.decode_arguments(_SHAPE, payload)
    try:
        return msgspec.json.encode(args[0] if args else None).decode()
    except (TypeError, ValueError) as error:
        raise SerializationError(f"the payload cannot be written as JSON: {error}") from error
