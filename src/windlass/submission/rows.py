"""From a call's options to the row that is stored."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

import msgspec

from windlass.domain.clock import MICROSECONDS, micros
from windlass.domain.job import NewJob
from windlass.domain.lanes import Lane
from windlass.domain.options import ResolvedOptions
from windlass.domain.tags import tags_text
from windlass.errors import PayloadTooLargeError, SerializationError
from windlass.submission.error_text import short
from windlass.submission.json_depth import TOO_DEEP, is_too_deep
from windlass.submission.stored_options import NO_CALLBACKS, Callbacks, to_text

_AFTER_ARGS = NewJob._fields.index("args") + 1


class RowTemplate(NamedTuple):
    """The part of a row that all calls with the same options share: everything but id, target and arguments."""

    shared: NewJob

    @classmethod
    def of(
        cls,
        options: ResolvedOptions,
        max_bytes: int,
        callbacks: Callbacks = NO_CALLBACKS,
        marked_circuit: str | None = None,
    ) -> RowTemplate:
        """Prepare options for many rows; their params count as payload.

        `marked_circuit` is the target's `@circuit_protected` mark; the option takes precedence.
        """
        lane = Lane(options.resource, options.resource_key, options.circuit or marked_circuit)
        expires_at, expires_us = _expiry(options)
        shared = NewJob(
            id="",
            queue=options.queue,
            target="",
            priority=options.priority,
            args="",
            due_at=None if options.run_at is None else micros(options.run_at),
            delay_us=int(options.delay * MICROSECONDS),
            options=to_text(options, callbacks),
            tags=tags_text(options.tags),
            params=_params_text(options, max_bytes),
            correlation_id=options.correlation_id,
            idempotency_key=options.idempotency_key,
            business_key=options.business_key,
            on_conflict=options.on_conflict,
            lane=lane.text,
            expires_at=expires_at,
            expires_us=expires_us,
        )
        return cls(shared)

    def row(self, job_id: str, target: str, args: str) -> NewJob:
        """Return the row of one call."""
        shared = self.shared  # by position: `_replace` takes three times as long, for every job
        return NewJob._make((job_id, shared.queue, target, shared.priority, args, *shared[_AFTER_ARGS:]))


def _expiry(options: ResolvedOptions) -> tuple[int | None, int | None]:
    expires = options.expires
    if expires is None:
        return None, None
    return (micros(expires), None) if isinstance(expires, datetime) else (None, int(expires * MICROSECONDS))


def _params_text(options: ResolvedOptions, max_bytes: int) -> str | None:
    if not options.params:
        return None
    try:
        data = msgspec.json.encode(dict(options.params))
    except TypeError as error:
        raise SerializationError(f"params must be JSON values: {error}; pass text, numbers, lists and dicts") from None
    except Exception as error:  # lone surrogates, cycles, and errors of a user's mapping
        reason = TOO_DEEP if isinstance(error, RecursionError) else error
        raise SerializationError(f"params {short(options.params)} cannot be stored: {reason}") from error
    if is_too_deep(data):
        raise SerializationError(f"params {short(options.params)} cannot be stored: {TOO_DEEP}")
    if len(data) > max_bytes:
        raise PayloadTooLargeError(
            f"params take {len(data):,} bytes as JSON, more than the limit of {max_bytes:,}; "
            "store the data elsewhere and pass its id, or raise jobs.max_payload_bytes"
        )
    return data.decode()
