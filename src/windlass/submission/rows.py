"""From a call's options to the row that is stored."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from windlass.domain.clock import micros
from windlass.domain.job import NewJob
from windlass.domain.lanes import Lane
from windlass.domain.options import ResolvedOptions
from windlass.errors import PayloadTooLargeError, SerializationError
from windlass.submission.error_text import short
from windlass.submission.json_depth import TOO_DEEP, is_too_deep
from windlass.submission.stored_options import NO_CALLBACKS, Callbacks, to_text

MICROSECONDS = 1_000_000


class RowTemplate(NamedTuple):
    """What the rows of all calls with the same options share: everything but id, target and arguments."""

    queue: str
    priority: int
    rest: tuple[Any, ...]
    """The fields of `NewJob` from `due_at` on."""

    @classmethod
    def of(
        cls,
        options: ResolvedOptions,
        most_bytes: int,
        callbacks: Callbacks = NO_CALLBACKS,
        marked_circuit: str | None = None,
    ) -> RowTemplate:
        """Prepare options for many rows; their params count as payload.

        `marked_circuit` is what `@circuit_protected` says of the target: the option comes first.
        """
        lane = Lane(options.resource, options.resource_key, options.circuit or marked_circuit)
        rest = (
            None if options.run_at is None else micros(options.run_at),
            int(options.delay * MICROSECONDS),
            to_text(options, callbacks),
            options.tags,
            _params_text(options, most_bytes),
            options.correlation_id,
            options.idempotency_key,
            options.business_key,
            options.on_conflict,
            None,
            lane.text,
            *_expiry(options),
        )
        return cls(options.queue, options.priority, rest)

    def row(self, job_id: str, target: str, args: str) -> NewJob:
        """The row of one call."""
        return NewJob(job_id, self.queue, target, self.priority, args, *self.rest)


def _expiry(options: ResolvedOptions) -> tuple[int | None, int | None]:
    expires = options.expires
    if expires is None:
        return None, None
    return (micros(expires), None) if isinstance(expires, datetime) else (None, int(expires * MICROSECONDS))


def _params_text(options: ResolvedOptions, most_bytes: int) -> str | None:
    if not options.params:
        return None
    try:
        data = msgspec.json.encode(dict(options.params))
    except TypeError as error:
        raise SerializationError(f"params must be JSON values: {error}; pass text, numbers, lists and dicts") from None
    except Exception as error:  # lone surrogates, cycles, and whatever a mapping of the user's raises
        reason = TOO_DEEP if isinstance(error, RecursionError) else error
        raise SerializationError(f"params {short(options.params)} cannot be stored: {reason}") from error
    if is_too_deep(data):
        raise SerializationError(f"params {short(options.params)} cannot be stored: {TOO_DEEP}")
    if len(data) > most_bytes:
        raise PayloadTooLargeError(
            f"params take {len(data):,} bytes as JSON, more than the limit of {most_bytes:,}; "
            "store the data elsewhere and pass its id, or raise jobs.max_payload_bytes"
        )
    return data.decode()
