"""The options stored with a job's row: only what differs from the defaults, so most jobs store none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, Final, Literal, NamedTuple

import msgspec
from msgspec import Meta

from windlass.domain.backoff import Backoff
from windlass.domain.batch import BatchRules
from windlass.domain.branches import Branch, Guard
from windlass.domain.durations import MAX_SECONDS
from windlass.domain.option_checks import MAX_RETRIES, Executor
from windlass.domain.options import UNSET, ResolvedOptions, Unset
from windlass.domain.priority import Priority
from windlass.errors import SerializationError
from windlass.runtime.error_classes import class_name
from windlass.submission.error_text import short

MAX_CACHED_TEXT = 512
"""Longest text, in characters, that is cached: longer ones contain arguments of callbacks and rarely repeat."""


Micros = Annotated[int, Meta(gt=-(1 << 62), lt=1 << 62)]
"""Microseconds, small enough that adding them to the store's clock cannot overflow."""


MarkName = Literal["outcome", "value", "error", "error_text"]
Path = Sequence[str | int]
"""The part of a result that a mark asks for: keys and indexes, outermost first."""


class StoredCallback(msgspec.Struct, frozen=True, omit_defaults=True):
    """A job that follows another one's outcome, except for what is known only with the outcome."""

    target: str
    args: tuple[list[Any], dict[str, Any]]
    """Its arguments as JSON values."""
    marks: dict[str, MarkName] = {}
    """The arguments to fill in when the job has ended, by index or name, and with what (see `templates`)."""
    paths: dict[str, Path] = {}
    """Marks that ask for a part of it."""
    queue: str | None = None
    """None: the queue of the job it follows."""
    priority: Annotated[int, Meta(ge=0, le=9)] = Priority.NORMAL.value
    due_at: Micros | None = None
    delay_us: Micros = 0
    options: str | None = None
    tags: tuple[str, ...] = ()
    params: str | None = None
    correlation_id: str | None = None
    """None: that of the job it follows."""
    lane: str | None = None
    expires_at: Micros | None = None
    expires_us: Micros | None = None


class StoredFlow(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the engine needs to know of a job's position in a flow. The rest is in `windlass_flow`.

    Without branches it contains no ids of jobs, so that many jobs share one text, which is then decoded once.
    """

    leads: tuple[int, ...] = ()
    """The ways in which other jobs follow it (`domain.dependencies.Follows`)."""
    group: str | None = None
    """The group that it counts for."""
    marks: dict[str, MarkName] = {}
    """The arguments to fill in when it is loaded, by index or name, and with what (see `templates`)."""
    paths: dict[str, Path] = {}
    """Marks that ask for a part of it."""
    of_group: bool = False
    """Whether the results come from a group."""
    shape: list[Any] | None = None
    """The form of that group, if it has nested groups (`domain.dependencies.nested`)."""
    branches: tuple[Branch, ...] = ()
    """Its branches, in the order of their evaluation. They have ids: few jobs have branches."""
    guard: Guard | None = None
    """The condition under which it follows its parent."""
    batch: BatchRules | None = None
    """Of a batch: its rules."""

    @property
    def predicates(self) -> list[str]:
        """The predicates of its branches."""
        return [one.predicate for one in self.branches if one.predicate is not None]


class StoredSignal(msgspec.Struct, frozen=True, omit_defaults=True):
    """A signal as it is stored: its payload is the text of the application's serializer, as of an argument."""

    outcome: Literal["signaled", "approved", "rejected"]
    payload: str | None = None
    reason: str | None = None
    by: str | None = None


class StoredWait(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a job waits for before it runs (`domain.signal.SignalWait`)."""

    key: str
    timeout_us: Annotated[int, Meta(gt=0, lt=1 << 62)] | None = None


FLOW_IN_TEXT: Final = '"flow":{'
"""Part of the stored options of every job with a `StoredFlow`; rare in others."""

Callbacks = Mapping[str, StoredCallback]
"""Callbacks by the name of their option."""
NO_CALLBACKS: Callbacks = {}


class RetryRules(NamedTuple):
    """The options `retry_on` and `give_up_on`: names of exception classes, as `error_classes` gives them."""

    retry_on: frozenset[str] | None = None
    """None: any error."""
    give_up_on: frozenset[str] = frozenset()


class StoredOptions(NamedTuple):
    """The options that the engine needs to run a job."""

    max_retries: int = 0
    backoff: Backoff = Backoff.none()
    timeout: float | Unset | None = UNSET
    """UNSET: the setting of the node that runs it applies."""
    executor: str | None = None
    on_success: StoredCallback | None = None
    on_failure: StoredCallback | None = None
    rules: RetryRules | None = None
    """Which errors are retried; None: the job has no rules."""
    flow: StoredFlow | None = None
    """Its position in a flow; None: nothing depends on it, and it takes no results."""
    wait: StoredWait | None = None
    """The signal that it waits for before it runs; None for most jobs."""
    signal: StoredSignal | None = None
    """The signal that came. It is not stored with the options, but added when the job is loaded."""


DEFAULTS = StoredOptions()


class _Text(msgspec.Struct):
    """The fields of stored options that this version knows: a later version may store more."""

    max_retries: Annotated[int, Meta(ge=0, le=MAX_RETRIES)] = 0
    backoff: list[Any] | None = None
    retry_on: frozenset[str] | None = None
    give_up_on: frozenset[str] = frozenset()
    timeout: Annotated[float, Meta(gt=0, le=MAX_SECONDS)] | msgspec.UnsetType | None = msgspec.UNSET
    executor: Executor | None = None
    on_success: StoredCallback | None = None
    on_failure: StoredCallback | None = None
    flow: StoredFlow | None = None
    wait: StoredWait | None = None
    signal: StoredSignal | None = None


_decode: Final = msgspec.json.Decoder(_Text).decode


def to_text(options: ResolvedOptions, callbacks: Callbacks = NO_CALLBACKS) -> str | None:
    """Return the stored form; None when all options are defaults."""
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


def with_flow(text: str | None, flow: StoredFlow) -> str:
    """Return stored options with a position in a flow."""
    return _with(text, "flow", flow)


def with_wait(text: str | None, wait: StoredWait) -> str:
    """Return stored options with the signal to wait for."""
    return _with(text, "wait", wait)


def with_signal(text: str | None, signal: StoredSignal) -> str:
    """Return stored options with the signal that came."""
    return _with(text, "signal", signal)


def _with(text: str | None, name: str, value: msgspec.Struct) -> str:
    added = f'"{name}":{msgspec.json.encode(value).decode()}'
    return f"{{{added}}}" if text is None else f"{text[:-1]},{added}}}"


def from_text(text: str | None) -> StoredOptions:
    """Return stored options; raise `SerializationError` if damaged. Cached: jobs of one target often share one text."""
    if not text:
        return DEFAULTS
    return _cached(text) if len(text) <= MAX_CACHED_TEXT else _read(text)


def _read(text: str) -> StoredOptions:
    try:
        stored = _decode(text)
        backoff = Backoff.from_json(stored.backoff)
    except (ValueError, TypeError, RecursionError) as error:  # also msgspec's own
        raise SerializationError(f"stored options {short(text)} are damaged: {error}") from error
    has_rules = stored.retry_on is not None or stored.give_up_on
    return StoredOptions(
        stored.max_retries,
        backoff,
        UNSET if stored.timeout is msgspec.UNSET else stored.timeout,
        stored.executor,
        stored.on_success,
        stored.on_failure,
        RetryRules(stored.retry_on, stored.give_up_on) if has_rules else None,
        stored.flow,
        stored.wait,
        stored.signal,
    )


_cached = lru_cache(maxsize=1024)(_read)
