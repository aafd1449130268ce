"""The options that travel with a job's row: only what differs from the defaults, so most jobs store none."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from windlass.domain.backoff import Backoff
from windlass.domain.options import UNSET, ResolvedOptions, Unset
from windlass.errors import SerializationError
from windlass.submission.wording import short


class StoredOptions(NamedTuple):
    """What the engine needs of a job's options when it runs."""

    max_retries: int = 0
    backoff: Backoff = Backoff.none()
    timeout: float | Unset | None = UNSET
    """UNSET: the setting of the node that runs it decides."""
    executor: str | None = None


DEFAULTS = StoredOptions()


def to_text(options: ResolvedOptions) -> str | None:
    """What is stored; None when everything is as by default."""
    stored: dict[str, Any] = {}
    if options.max_retries:
        stored["max_retries"] = options.max_retries
    if (backoff := options.backoff.to_json()) is not None:
        stored["backoff"] = backoff
    if options.timeout is not UNSET:
        stored["timeout"] = options.timeout
    if options.executor is not None:
        stored["executor"] = options.executor
    return msgspec.json.encode(stored).decode() if stored else None


@lru_cache(maxsize=1024)
def from_text(text: str | None) -> StoredOptions:
    """What was stored; `SerializationError` if it is damaged. Cached: jobs of one target mostly share one text."""
    if not text:
        return DEFAULTS
    try:
        stored = msgspec.json.decode(text, type=dict[str, Any])
        backoff = Backoff.from_json(stored.get("backoff"))
    except (ValueError, TypeError) as error:  # also msgspec's own, and what a backoff says of bad numbers
        raise SerializationError(f"stored options {short(text)} are damaged: {error}") from error
    return StoredOptions(
        stored.get("max_retries", 0),
        backoff,
        stored.get("timeout", UNSET),
        stored.get("executor"),
    )
