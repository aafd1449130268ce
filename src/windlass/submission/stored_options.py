"""The options that travel with a job's row: only what differs from the defaults, so most jobs store none."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from windlass.domain.backoff import Backoff
from windlass.domain.options import UNSET, ResolvedOptions, Unset
from windlass.domain.priority import Priority
from windlass.errors import SerializationError
from windlass.runtime.error_classes import class_name
from windlass.submission.wording import short

MOST_CACHED_TEXT = 512
"""Characters up to which read options are kept: longer ones have arguments of callbacks in them, no two alike."""


class StoredCallback(msgspec.Struct, frozen=True, omit_defaults=True):
    """A job that follows another one's outcome, all but what only the outcome brings."""

    target: str
    args: tuple[list[Any], dict[str, Any]]
    """Its arguments in terms of JSON."""
    marks: dict[str, str] = {}
    """Which arguments are filled in when the job has ended, by number or name, and with what (see `callbacks`)."""
    queue: str | None = None
    """None: the queue of the job it follows."""
    priority: int = Priority.NORMAL.value
    due_at: int | None = None
    delay_us: int = 0
    options: str | None = None
    tags: tuple[str, ...] = ()
    params: str | None = None
    correlation_id: str | None = None
    """None: that of the job it follows."""
    lane: str | None = None
    expires_at: int | None = None
    expires_us: int | None = None


Callbacks = Mapping[str, StoredCallback]
"""By the name of their option."""
NO_CALLBACKS: Callbacks = {}


class RetryRules(NamedTuple):
    """The options `retry_on` and `give_up_on`: names of exception classes, as `error_classes` gives them."""

    retry_on: frozenset[str] | None = None
    """None: any error."""
    give_up_on: frozenset[str] = frozenset()


class StoredOptions(NamedTuple):
    """What the engine needs of a job's options when it runs."""

    max_retries: int = 0
    backoff: Backoff = Backoff.none()
    timeout: float | Unset | None = UNSET
    """UNSET: the setting of the node that runs it decides."""
    executor: str | None = None
    on_success: StoredCallback | None = None
    on_failure: StoredCallback | None = None
    rules: RetryRules | None = None
    """Which errors are worth a retry; None: the job does not say."""


DEFAULTS = StoredOptions()


def to_text(options: ResolvedOptions, callbacks: Callbacks = NO_CALLBACKS) -> str | None:
    """What is stored; None when everything is as by default."""
    stored: dict[str, Any] = {**callbacks}
    if options.max_retries:
        stored["max_retries"] = options.max_retries
    if (backoff := options.backoff.to_json()) is not None:
        stored["backoff"] = backoff
    if options.retry_on:
        stored["retry_on"] = list(map(class_name, options.retry_on))
    if options.give_up_on:
        stored["give_up_on"] = list(map(class_name, options.give_up_on))
    if options.timeout is not UNSET:
        stored["timeout"] = options.timeout
    if options.executor is not None:
        stored["executor"] = options.executor
    return msgspec.json.encode(stored).decode() if stored else None


def from_text(text: str | None) -> StoredOptions:
    """What was stored; `SerializationError` if it is damaged. Cached: jobs of one target mostly share one text."""
    if not text:
        return DEFAULTS
    return _cached(text) if len(text) <= MOST_CACHED_TEXT else _read(text)


def _read(text: str) -> StoredOptions:
    try:
        stored = msgspec.json.decode(text, type=dict[str, Any])
        backoff = Backoff.from_json(stored.get("backoff"))
        on_success, on_failure = (
            msgspec.convert(stored.get(name), StoredCallback | None) for name in ("on_success", "on_failure")
        )
        rules = _retry_rules(stored) if "retry_on" in stored or "give_up_on" in stored else None
    except (ValueError, TypeError) as error:  # also msgspec's own, and what a backoff says of bad numbers
        raise SerializationError(f"stored options {short(text)} are damaged: {error}") from error
    return StoredOptions(
        stored.get("max_retries", 0),
        backoff,
        stored.get("timeout", UNSET),
        stored.get("executor"),
        on_success,
        on_failure,
        rules,
    )


def _retry_rules(stored: Mapping[str, Any]) -> RetryRules:
    retry_on = msgspec.convert(stored.get("retry_on"), frozenset[str] | None)
    return RetryRules(retry_on, msgspec.convert(stored.get("give_up_on", ()), frozenset[str]))


_cached = lru_cache(maxsize=1024)(_read)
