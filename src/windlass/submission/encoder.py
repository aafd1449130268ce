"""From calls to rows: what is stored is checked and encoded before anything is stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from windlass.domain.identity import new_job_id, new_job_ids
from windlass.domain.job import NewJob
from windlass.domain.options import JobOptions
from windlass.domain.signal import SignalWait
from windlass.errors import InvalidOptionError
from windlass.spi import Serializer
from windlass.submission.call import Call, Flow
from windlass.submission.callbacks import stored_callbacks
from windlass.submission.current_connection import given_connection
from windlass.submission.flow_encoder import FlowEncoder
from windlass.submission.predicates import Predicates
from windlass.submission.registry import Registry
from windlass.submission.rows import RowTemplate
from windlass.submission.signature import CallSpec
from windlass.submission.stored_options import StoredWait, with_wait

MAX_TEMPLATES: Final = 512


class CallEncoder:
    """Makes rows of calls."""

    def __init__(self, registry: Registry, serializer: Serializer, most_bytes: int) -> None:
        self._registry = registry
        self._serializer = serializer
        self._most_bytes = most_bytes
        self.flows = FlowEncoder(self.row, most_bytes, Predicates(registry))
        self._templates: dict[tuple[int, str | None], tuple[JobOptions, RowTemplate]] = {}
        """Templates by identity of the options, which an entry keeps alive: comparing them costs more than encoding."""

    def rows(self, calls: Sequence[Call[Any] | Flow[Any]]) -> list[NewJob]:
        """Check and encode calls and flows; each job gets a new id."""
        if any(isinstance(call, Flow) for call in calls):
            return [row for call in calls for row in self._rows(call)]
        return [self.row(job_id, call) for job_id, call in zip(new_job_ids(len(calls)), calls, strict=True)]

    def _rows(self, call: Call[Any] | Flow[Any]) -> list[NewJob]:
        return self.flows.rows(call) if isinstance(call, Flow) else [self.row(new_job_id(), call)]

    def arguments(self, spec: CallSpec, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """Encode the arguments of one call."""
        return self._serializer.encode_arguments(spec, args, kwargs, self._most_bytes)

    def row(self, job_id: str, call: Any, args: str | None = None) -> NewJob:
        """Return the row of one call; its arguments may be given."""
        if not isinstance(call, Call):
            raise InvalidOptionError(f"expected calls, e.g. charge.bind(42), got {call!r}; bind its arguments first")
        if args is None:
            args = self._serializer.encode_arguments(call.spec, call.args, call.kwargs, self._most_bytes)
        row = self._template(call.options, call.circuit).row(job_id, call.target, args)
        return row if call.wait is None else _waiting(row, call.wait)

    def _template(self, options: JobOptions, marked_circuit: str | None) -> RowTemplate:
        """Made once per options object: thousands of calls of one job share it."""
        key = (id(options), marked_circuit)
        kept = self._templates.get(key)
        if kept is not None:
            return kept[1]
        template = self._new_template(options, marked_circuit)
        if given_connection(options) is None:  # else it would keep the caller's connection
            if len(self._templates) >= MAX_TEMPLATES:
                self._templates.clear()
            self._templates[key] = (options, template)
        return template

    def _new_template(self, options: JobOptions, marked_circuit: str | None) -> RowTemplate:
        resolved = options.resolved()
        callbacks = stored_callbacks(resolved, self._registry, self._most_bytes)
        return RowTemplate.of(resolved, self._most_bytes, callbacks, marked_circuit)


def _waiting(row: NewJob, wait: SignalWait) -> NewJob:
    """Return the row of a job that waits for a signal: the time until it runs is not known."""
    if row.due_at is not None or row.delay_us:
        raise InvalidOptionError(
            f"{row.target} waits for the signal {wait.key!r} and has a delay or run_at, of which only one can decide "
            "when it runs; leave the time out (a declared delay is taken back by .using(delay=0)), or enqueue the job "
            "without await_signal"
        )
    return row._replace(options=with_wait(row.options, StoredWait(wait.key, wait.timeout_us)), wait=wait)
