"""Every setting of every component: its default, its meaning, what it accepts, and where its value comes from.

`Settings.load()` merges the defaults, a file, the environment and arguments. Settings that an application gets in code
override the same sources, field by field: a field that is not given comes from the environment, the file, or the
default.

```python
settings = Settings(poller=PollerSettings(batch_size=64), jobs=JobsSettings(timeout=timedelta(minutes=5)))
settings = Settings.load(overrides={"node": {"concurrency": 20}})
```

Durations are seconds or `timedelta` when given, and plain seconds when read. In files and variables "no limit" is
written `none` (`WINDLASS_JOBS__TIMEOUT=none`), because 0 could be read as "at once".
"""
# ruff: noqa: RUF009 - the calls in the class bodies make descriptors, which are one per class on purpose

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Final

from windlass.domain.circuit import CircuitProfile
from windlass.domain.poll_interval import AdaptivePolling
from windlass.errors import ConfigurationError
from windlass.settings.option import (
    Commit,
    Cron,
    KeepLogs,
    OptionalSeconds,
    OptionalWhole,
    Profile,
    Seconds,
    Section,
    Switch,
    Whole,
    circuit_profile,
    commit_mode,
    cron,
    duration,
    kept_logs,
    optional_bytes,
    optional_duration,
    switch,
    whole,
)
from windlass.settings.pipeline_settings import PipelinesSettings, StepDefaults
from windlass.settings.sources import from_environ, from_file, from_overrides

__all__ = [
    "SECTIONS",
    "CircuitsSettings",
    "DeadLettersSettings",
    "FlowsSettings",
    "JobsSettings",
    "NodeSettings",
    "PipelinesSettings",
    "PollerSettings",
    "Settings",
    "StepDefaults",
    "adaptive_polling",
]


@dataclass(frozen=True, kw_only=True)
class PollerSettings(Section):
    """How a node polls for due jobs."""

    section: ClassVar[str] = "poller"

    batch_size: Whole = whole(1000, minimum=1)
    """Largest number of jobs that one claim takes; it never exceeds the free slots."""
    burst_delay: Seconds = duration(0.5)
    """Pause between polls right after a wakeup."""
    min_delay: Seconds = duration(2)
    """Shortest pause between polls."""
    max_delay: Seconds = duration(30)
    """Longest pause between polls."""
    deep_idle_delay: Seconds = duration(60)
    """Pause between polls of a node that has been idle for `deep_idle_after`."""
    deep_idle_after: Seconds = duration(300)
    """How long a node must find no job before it counts as deeply idle."""

    def __post_init__(self) -> None:
        if self.min_delay > self.max_delay:
            raise ConfigurationError(
                f"poller.min_delay must be at most poller.max_delay ({self.max_delay:g}), got {self.min_delay:g}; "
                "lower the first or raise the second"
            )


@dataclass(frozen=True, kw_only=True)
class NodeSettings(Section):
    """How a worker process behaves in the cluster."""

    section: ClassVar[str] = "node"

    heartbeat_interval: Seconds = duration(5)
    """Base interval of the heartbeat; load moves it between half and twice this value."""
    missed_heartbeats: Whole = whole(3, minimum=1)
    """Number of announced heartbeats that a node may miss before it counts as lost."""
    crash_budget: Whole = whole(3, minimum=0)
    """How often a job is run again after its node or process died, before it fails as `worker_lost`."""
    drain_timeout: Seconds = duration(30, zero="at once")
    """How long running jobs may continue when a node drains, before they are cancelled and released."""
    loop_block_warning: Seconds = duration(1, zero="off")
    """Seconds after which a warning is logged that a job blocks the event loop; 0 turns it off."""
    recovery_interval: Seconds = duration(2)
    """How often lost nodes are looked for."""
    sweep_interval: Seconds = duration(10)
    """How often one node of the cluster checks for work that was missed elsewhere."""
    statistics_interval: Seconds = duration(10)
    """How often one node of the cluster adds up the counts of ended jobs."""
    concurrency: Whole = whole(100, minimum=1)
    """Number of jobs that a worker runs at a time, unless the worker sets its own."""
    unknown_target_after: Seconds = duration(86_400, zero="at once")
    """How long a target may be unknown to all nodes before its jobs fail with `target_not_found`."""
    process_jobs: Whole = whole(1000, minimum=1)
    """Number of jobs with `executor="process"` that a process runs before it is replaced."""
    process_memory_bytes: OptionalWhole = optional_bytes(None, minimum=67_108_864)
    """Memory limit of such a process; beyond it the job gets a `MemoryError`; None for no limit."""


@dataclass(frozen=True, kw_only=True)
class JobsSettings(Section):
    """Defaults for every job that does not override them."""

    section: ClassVar[str] = "jobs"

    boost_interval: Seconds = duration(900, zero="off")
    """A waiting job gains one priority level per interval; 0 turns it off."""
    timeout: OptionalSeconds = optional_duration(1800)
    """How long one attempt may run; None (`none` in files and variables) for no limit."""
    max_payload_bytes: Whole = whole(102_400, minimum=1)
    """Largest size of the encoded arguments of a job."""
    max_result_bytes: Whole = whole(65_536, minimum=1)
    """Largest size of an encoded result that is kept; a larger one is replaced by a marker."""
    retention: Seconds = duration(2_592_000, zero="archive at once")
    """How long finished jobs stay in the main tables before they are archived."""
    archive_interval: Seconds = duration(60)
    """How often one node of the cluster looks for finished jobs to archive."""
    commit: Commit = commit_mode("group")
    """`group`: completions share commits, for throughput; `each`: one commit a job, for the narrowest re-run window."""
    redact_emails: Switch = switch(True)
    """Whether e-mail addresses are removed from stored errors."""
    max_error_length: Whole = whole(2000, minimum=100)
    """Number of characters of an error that are kept."""
    keep_logs: KeepLogs = kept_logs("job")
    """Log lines kept with a job: `job`: those of `ctx.log`; `all`: those of every logger, by its level; `none`."""
    max_log_lines: Whole = whole(1000, minimum=1)
    """Number of log lines that are kept for one attempt."""


@dataclass(frozen=True, kw_only=True)
class DeadLettersSettings(Section):
    """How long dead letters are kept, and how alerts are grouped."""

    section: ClassVar[str] = "dead_letters"

    retention: Seconds = duration(7_776_000)
    """How long a FAILED job is kept after its failure, live or archived, before it is purged."""
    purge_cron: Cron = cron("0 2 * * *")
    """When dead letters are purged, by one node, in UTC; None (`none` in files and variables) for never."""
    alert_window: Seconds = duration(3600)
    """How long further failures of the same target and kind of error only add to an alert's count."""


@dataclass(frozen=True, kw_only=True)
class CircuitsSettings(Section):
    """The default profile of circuits, and how long a node caches their state."""

    section: ClassVar[str] = "circuits"

    profile: Profile = circuit_profile(CircuitProfile.DEFAULT)
    """The profile of circuits that are not configured."""
    refresh: Seconds = duration(1)
    """How long a node uses its cached state of circuits, paused queues and due jobs without a notification."""


@dataclass(frozen=True, kw_only=True)
class FlowsSettings(Section):
    """How much the steps of flows may pass on, and how long their conditions may take."""

    section: ClassVar[str] = "flows"

    max_joined_bytes: Whole = whole(16_777_216, minimum=1)
    """Largest sum of the encoded results of a group's members that the step behind it may take."""
    predicate_timeout: Seconds = duration(30)
    """Seconds that the predicate of a branch may take; then its branch is canceled."""


@dataclass(frozen=True, kw_only=True)
class RecurringSettings(Section):
    """When ticks of schedules count as missed, and when schedules are retired."""

    section: ClassVar[str] = "recurring"

    misfire_after: Seconds = duration(10, zero="any delay")
    """How late the last due tick of a schedule may be before it counts as missed."""
    retire_after: Seconds = duration(15, zero="at once")
    """How long a worker must have been up before schedules that its application no longer declares are retired."""


_KINDS: Final = (
    *(PollerSettings, NodeSettings, JobsSettings, DeadLettersSettings, CircuitsSettings, FlowsSettings),
    *(RecurringSettings, PipelinesSettings),
)
SECTIONS: Final[dict[str, type[Section]]] = {
    kind.section: kind for outer in _KINDS for kind in (outer, *outer.inner().values())
}
"""The section classes by name; inner ones behind theirs, as `pipelines.defaults`."""
_OUTER: Final = {kind.section: kind for kind in _KINDS}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All settings; every part has its defaults, so name only what you change.

    Example: `Settings(poller=PollerSettings(batch_size=64)).poller.max_delay == 30.0`
    """

    poller: PollerSettings = field(default_factory=PollerSettings)
    """How a node polls for due jobs."""
    node: NodeSettings = field(default_factory=NodeSettings)
    """How a worker process behaves in the cluster."""
    jobs: JobsSettings = field(default_factory=JobsSettings)
    """Defaults for every job that does not override them."""
    dead_letters: DeadLettersSettings = field(default_factory=DeadLettersSettings)
    """How long dead letters are kept, and how alerts are grouped."""
    circuits: CircuitsSettings = field(default_factory=CircuitsSettings)
    """The default profile of circuits, and how long a node caches their state."""
    flows: FlowsSettings = field(default_factory=FlowsSettings)
    """How much the steps of flows may pass on."""
    recurring: RecurringSettings = field(default_factory=RecurringSettings)
    """When ticks of schedules count as missed, and when schedules are retired."""
    pipelines: PipelinesSettings = field(default_factory=PipelinesSettings)
    """What holds for all pipelines, and the defaults of all steps."""

    def __post_init__(self) -> None:
        for name, kind in _OUTER.items():
            if not isinstance(getattr(self, name), kind):
                raise ConfigurationError(f"settings.{name} must be a {kind.__name__}, got {getattr(self, name)!r}")

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str] | None = None,
        environ: Mapping[str, str] = os.environ,
        overrides: Mapping[str, Mapping[str, object]] | None = None,
    ) -> "Settings":
        """Merge defaults, a file, `WINDLASS_<SECTION>__<FIELD>` variables and `overrides`, field by field.

        The later one wins. Without `path` the file is `windlass.toml`, else `[tool.windlass]` of `pyproject.toml`, in
        the current folder. An override of `msgspec.UNSET` counts as not given: callers can pass their options on as
        they are.

        Example: `Settings.load(environ={"WINDLASS_JOBS__TIMEOUT": "none"}).jobs.timeout is None`
        """
        given: dict[str, dict[str, Any]] = {
            name: {key: option.default for key, option in kind.options().items()} for name, kind in SECTIONS.items()
        }  # in full, so that loaded settings are not merged with other sources again
        entries = (
            *from_file(path, SECTIONS),
            *from_environ(environ, SECTIONS),
            *from_overrides(overrides or {}, SECTIONS),
        )
        for entry in entries:
            checked = entry.value(SECTIONS)  # before the lookup: this check refuses an unknown section
            given[entry.section][entry.key] = checked
        return cls(**{name: _section(kind, given) for name, kind in _OUTER.items()})


def _section(kind: type[Section], given: Mapping[str, Mapping[str, Any]]) -> Any:
    """Return a section and its inner ones with their values."""
    inner = {name: _section(part, given) for name, part in kind.inner().items()}
    return kind(**given[kind.section], **inner)


def in_force(given: object) -> Settings:
    """Return the settings of an application: those given in code over the environment, the file and the defaults."""
    if given is None:
        return Settings.load()
    if not isinstance(given, Settings):
        raise ConfigurationError(
            f"settings must be a Settings, e.g. Settings(node=NodeSettings(concurrency=20)), got {given!r}"
        )
    return Settings.load(overrides={name: getattr(given, name).given() for name in _OUTER})


def adaptive_polling(poller: PollerSettings) -> AdaptivePolling:
    """Return the default polling strategy with these delays."""
    return AdaptivePolling(**{item.name: getattr(poller, item.name) for item in fields(AdaptivePolling)})
