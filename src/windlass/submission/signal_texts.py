"""Signals as stored text: the payload is typed JSON, like an argument without annotation."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from windlass.domain.signal import SentSignal, Signal
from windlass.spi import Serializer
from windlass.submission.signature import CallSpec, call_spec
from windlass.submission.stored_options import StoredOptions, StoredSignal


def signal(payload: Any) -> None:
    """Stand for `app.signal` in the errors of its payload."""


_SPEC: Final[CallSpec] = call_spec(signal)


def stored_signal(sent: SentSignal, serializer: Serializer, max_bytes: int) -> str:
    """Return the stored form of a signal; raise what the serializer raises for a payload that cannot be stored."""
    payload = None
    if sent.payload is not None:
        payload = serializer.encode_arguments(_SPEC, (sent.payload,), {}, max_bytes)
    return msgspec.json.encode(StoredSignal(sent.outcome, payload, sent.reason)).decode()


def read_signal(options: StoredOptions, serializer: Serializer) -> Signal | None:
    """Return the signal of a job that was loaded; None if it awaits none."""
    stored, wait = options.signal, options.wait
    if stored is None or wait is None:
        return None
    payload = None
    if stored.payload is not None:
        (payload,), _ = serializer.decode_arguments(_SPEC, stored.payload)
    return Signal(key=wait.key, outcome=stored.outcome, payload=payload, reason=stored.reason, by=stored.by)
