"""Signals as a feature: read when a job that awaited one is about to run; waits are closed at its end, or time out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from windlass.domain.ended import Ended
from windlass.domain.job import Claim, Payload
from windlass.domain.signal import WAIT_IN_TEXT
from windlass.domain.states import JobStatus, Move
from windlass.errors import SerializationError
from windlass.feature import ArgumentSource, Feature, NodeTools
from windlass.flow.wait_timeouts import WaitTimeouts
from windlass.stores.dialect import Dialect
from windlass.stores.ending import FollowUp
from windlass.stores.plan import Plan
from windlass.stores.plans import signal_waits
from windlass.submission.stored_options import StoredSignal, with_signal

_ENDS: Final = frozenset({Move.FAIL, Move.CANCEL, Move.GIVE_UP})
_Found = Mapping[str, tuple[str | None, str | None]]


def feature() -> Feature:
    """Return the waiting for signals as a feature."""

    def services(tools: NodeTools) -> Sequence[WaitTimeouts]:
        return (WaitTimeouts(tools),)

    return Feature(
        "signals",
        (FollowUp(_ENDS, may_wait, signal_waits.close),),
        services=services,
        arguments=ArgumentSource(awaits_signal, _read, _fill),
    )


def awaits_signal(payload: Payload) -> bool:
    """Return whether a job awaits a signal; its options are not decoded for it."""
    return isinstance(payload.options, str) and WAIT_IN_TEXT in payload.options


def may_wait(ended: Ended) -> bool:
    """Return whether the wait of an ended job may be open. The wait of one that got its signal is closed."""
    if ended.left is JobStatus.WAITING:
        return True
    return ended.left is JobStatus.RUNNING and ended.payload is not None and awaits_signal(ended.payload)


def _read(dialect: Dialect, payloads: Mapping[str, Payload]) -> Plan[_Found]:
    return (yield from signal_waits.signals_of(dialect, list(payloads)))


def _fill(claim: Claim, payload: Payload, found: _Found) -> Payload:
    """Return the payload with the signal in its options; without, if none came in time."""
    if claim.job_id not in found:
        return payload  # a text that only looks like it, or a damaged row: its options say what it is
    text, by_whom = found[claim.job_id]
    if text is None:
        return payload
    try:
        signal = msgspec.json.decode(text, type=StoredSignal)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise SerializationError(f"the signal of job {claim.job_id} is damaged: {error}") from None
    by = msgspec.structs.replace(signal, by=by_whom)
    return payload._replace(options=with_signal(payload.options, by))
