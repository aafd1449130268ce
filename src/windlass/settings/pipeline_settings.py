"""The settings of pipelines, with the defaults of all steps as a section of their own."""
# ruff: noqa: RUF009 - the calls in the class bodies make descriptors, which are one per class on purpose

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, get_args

from windlass.domain.dead_letter import DeadLetter
from windlass.domain.deliveries import Delivery
from windlass.domain.step_options import STEP_CHECKS, STEP_OPTION_NAMES, StepOptions
from windlass.settings.option import (
    Cron,
    Option,
    OptionalSeconds,
    Seconds,
    SecretTexts,
    Section,
    Switch,
    Whole,
    cron,
    duration,
    secrets,
    switch,
    whole,
)

OptionalName: TypeAlias = Option[str | None, str | None]
NamedSink: TypeAlias = Literal["store", "log"]
Sink: TypeAlias = Option[NamedSink, NamedSink]

NamedProvider: TypeAlias = Literal["store", "log", "sqs"]


class ProviderObject(Protocol):
    """An outlet, as far as a setting knows it."""

    def deliver(self, delivery: Delivery, /) -> None:
        """Pass a delivery on."""


Provider: TypeAlias = NamedProvider | ProviderObject | Callable[[DeadLetter], object]

_DEFAULTS = StepOptions()


def _step_option(name: str, wire_type: Any) -> Any:
    """Make a field with the default and the check of a step's option."""
    return Option[Any, Any](getattr(_DEFAULTS, name), STEP_CHECKS[name].allowed, wire_type, STEP_CHECKS[name].check)


def _sink(default: NamedSink) -> Sink:
    """Make a choice of sinks that need no object."""

    def accept(value: Any) -> NamedSink:
        if value not in get_args(NamedSink):
            raise ValueError
        chosen: NamedSink = value
        return chosen

    return Option(default, '"store" or "log"', str, accept)


def _provider() -> Option[Provider, Provider]:
    """Make a choice of providers of dead letters: a name, or in code an object or a function."""

    def accept(value: Any) -> Provider:
        known = value in get_args(NamedProvider) if isinstance(value, str) else _is_provider(value)
        if not known:
            raise ValueError
        chosen: Provider = value
        return chosen

    return Option("store", '"store", "log" or "sqs", or in code a function or an outlet', str, accept)


def _is_provider(value: Any) -> bool:
    return not isinstance(value, type) and (callable(value) or callable(getattr(value, "deliver", None)))


def _optional_text() -> OptionalName:
    def accept(value: Any) -> str | None:
        if value is None or (isinstance(value, str) and value.strip()):
            return value
        raise ValueError

    return Option(None, "a text that is not empty, or None", str | None, accept)


@dataclass(frozen=True, kw_only=True)
class StepDefaults(Section):
    """Options of every step for which neither the step nor its pipeline gives a value."""

    section: ClassVar[str] = "pipelines.defaults"

    retry_limit: Whole = _step_option("retry_limit", int)
    """Number of retries after the first attempt."""
    retry_wait: Seconds = _step_option("retry_wait", float)
    """Wait before the first retry; each further wait is twice as long."""
    max_backoff: Seconds = _step_option("max_backoff", float)
    """Longest wait before a retry."""
    jitter: Switch = _step_option("jitter", bool)
    """Whether a wait is a random part of its full length."""
    recover_on_failure: Switch = _step_option("recover_on_failure", bool)
    """Whether an item that has used up its retries is rejected, and its execution continues."""
    concurrency: Whole = _step_option("concurrency", int)
    """Number of items of one execution that a step runs at a time, in the whole cluster."""
    ordered: Switch = _step_option("ordered", bool)
    """Whether items run one at a time, in their order."""
    buffer: Whole = _step_option("buffer", int)
    """Number of items between two commits, and of a page that a reduction reads."""
    timeout: OptionalSeconds = _step_option("timeout", float | None)
    """How long one attempt of a step may run; None: `jobs.timeout` applies."""
    circuit: OptionalName = _step_option("circuit", str | None)
    """The circuit that every item passes."""
    resource: OptionalName = _step_option("resource", str | None)
    """The resource of which every item holds a permit."""

    def step_options(self) -> StepOptions:
        """Return them as the options of a step."""
        return StepOptions(**{name: getattr(self, name) for name in STEP_OPTION_NAMES})


@dataclass(frozen=True, kw_only=True)
class PipelinesSettings(Section):
    """What holds for all pipelines."""

    section: ClassVar[str] = "pipelines"

    defaults: StepDefaults = field(default_factory=StepDefaults)
    """Options of every step for which neither the step nor its pipeline gives a value."""
    production: Switch = switch(True)
    """Whether a worker refuses to start if rejected items could be lost."""
    retention: Seconds = duration(2_592_000)
    """How long a finished execution is kept."""
    max_value_bytes: Whole = whole(262_144, minimum=1)
    """Largest size of the encoded value of an item, an input or a result."""
    max_circuit_deferral: Seconds = duration(86_400)
    """How long an open circuit may hold up an item before it fails with `circuit_deferral_exhausted`."""
    reject_retention: Seconds = duration(7_776_000)
    """How long rejects are kept."""
    reject_sink: Sink = _sink("store")
    """Where rejects of pipelines without a sink of their own go: `store`, or `log`, where they may be lost."""
    purge_cron: Cron = cron("0 2 * * *")
    """When finished executions and rejects are purged, by one node, in UTC; None (`none` in files) for never."""
    include_payload: Switch = switch(False)
    """Whether rejects keep their item, so that it can be re-driven."""
    token_keys: SecretTexts = secrets(32)
    """Keys of the tokens of waiting steps: the first signs, all verify. Empty: a key that is made in the store."""
    dlq_provider: Option[Provider, Provider] = _provider()
    """Where dead letters of executions and jobs go in addition to the store: `store` (nowhere else), `log` or `sqs`; in
    code also a function that takes a `DeadLetter`, or an outlet."""
    dlq_url: OptionalName = _optional_text()
    """The URL of the queue for `dlq_provider = "sqs"`."""
