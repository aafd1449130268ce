"""The options of a whole pipeline: how executions are submitted, by which tenants, and how they end."""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from windlass.domain.key_policy import KeyPolicy
from windlass.domain.keys import check_key, check_queue
from windlass.domain.options import DEFAULT_QUEUE
from windlass.domain.priority import Priority, parse_priority
from windlass.domain.reject import Reject, SinkFailure
from windlass.domain.step_options import (
    STEP_OPTION_NAMES,
    StepOptionsDict,
    check_step_options,
    check_switch,
    checked_option,
)
from windlass.domain.suggestions import did_you_mean
from windlass.errors import InvalidOptionError
from windlass.pipelines.reject_sinks import checked_sink
from windlass.spi import Outlet, RejectSink

MAX_NAME: Final = 100
MAX_VERSION: Final = 50

_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_NOT_IN_NAME = re.compile(r"[^A-Za-z0-9_.-]+")


class PipelineOptionsDict(StepOptionsDict, total=False):
    """The options as keywords, those of all steps included, for `**options: Unpack[PipelineOptionsDict]`."""

    dlq: bool
    max_rejected: int | float | None
    include_payload: bool | None
    sink: RejectSink | Outlet | Callable[[Reject], object] | str | None
    sink_failure: SinkFailure | str
    key_policy: KeyPolicy
    tenants: Collection[str] | None
    require_tenant: bool
    tenant_concurrency: int | None
    queue: str
    priority: int | Priority
    subscribe: str | None
    max_in_flight: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineOptions:
    """Checked options of a pipeline; made by `split_options`."""

    dlq: bool = True
    """Whether a terminal failure becomes a dead letter."""
    max_rejected: int | float | None = None
    """Number (an int) or share (a float) of rejected items that ends an execution; None: no limit."""
    include_payload: bool | None = None
    """Whether rejects keep their item; None: the setting `pipelines.include_payload` decides."""
    sink: RejectSink | None = None
    """Where rejects go; None: the setting `pipelines.reject_sink` decides."""
    sink_failure: SinkFailure = SinkFailure.CONTINUE
    """What follows when the sink fails."""
    key_policy: KeyPolicy = KeyPolicy.OPTIONAL_KEY
    """Where the key of an execution comes from."""
    tenants: frozenset[str] | None = None
    """The tenants that may submit; None: all."""
    require_tenant: bool = False
    """Whether every submission must name its tenant."""
    tenant_concurrency: int | None = None
    """Number of executions of one tenant that run at a time; None: no limit."""
    queue: str = DEFAULT_QUEUE
    """The queue of its jobs."""
    priority: int = Priority.NORMAL.value
    """The priority of its jobs."""
    subscribe: str | None = None
    """The publication whose items become executions."""
    max_in_flight: int | None = None
    """Number of open executions at which no more items of the publication are admitted; None: no limit."""


def split_options(given: Mapping[str, Any], where: str) -> tuple[PipelineOptions, dict[str, Any]]:
    """Check the options of a pipeline; return its own, and those of its steps."""
    own: dict[str, Any] = {}
    of_steps: dict[str, Any] = {}
    for name, value in given.items():
        if name in STEP_OPTION_NAMES:
            of_steps[name] = value
        elif name in _CHECKS:
            own[name] = checked_option(where, name, _CHECKS[name], value)
        else:
            known = (*_CHECKS, *STEP_OPTION_NAMES)
            hint = did_you_mean(name, known) or f"; the options are {', '.join(known)}"
            raise InvalidOptionError(f"{where}: unknown option {name!r}{hint}")
    made = PipelineOptions(**own)
    if made.max_in_flight is not None and made.subscribe is None:
        raise InvalidOptionError(
            f"{where}: max_in_flight={made.max_in_flight} needs a publication; add subscribe='...'"
        )
    return made, check_step_options(of_steps, where)


def check_label(value: object, what: str, longest: int) -> str:
    """Check the name of a pipeline, a version, a step or a publication: letters, digits and `_ . -`."""
    if isinstance(value, str) and _NAME.fullmatch(value) and len(value) <= longest:
        return value
    rule = f"{what} must be 1 to {longest} characters of A-Z a-z 0-9 _ . -, got {value!r}"
    meant = _NOT_IN_NAME.sub("-", str(value).strip()).strip("-")[:longest] if isinstance(value, str | int) else ""
    raise InvalidOptionError(f"{rule}; did you mean {meant!r}?" if meant else f"{rule}; e.g. 'orders'")


def _check_include_payload(value: object) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    raise InvalidOptionError(
        f"include_payload must be True, False, or None for the setting pipelines.include_payload, got {value!r}"
    )


def _check_sink_failure(value: object) -> SinkFailure:
    if isinstance(value, str) and value.upper() in SinkFailure.__members__:
        return SinkFailure(value.upper())
    known = " or ".join(f"SinkFailure.{one.name}" for one in SinkFailure)
    raise InvalidOptionError(f"sink_failure must be {known}, got {value!r}")


def _check_max_rejected(value: object) -> int | float | None:
    if value is None:
        return None
    if isinstance(value, int | float) and not isinstance(value, bool):
        if isinstance(value, int) and value >= 0:
            return value
        if isinstance(value, float) and 0 < value < 1:
            return value
    raise InvalidOptionError(
        "max_rejected must be a number of items, an int from 0 on, or a share of them, a float between 0 and 1, "
        f"got {value!r}; e.g. max_rejected=10 or max_rejected=0.05, or None for no limit"
    )


def _check_key_policy(value: object) -> KeyPolicy:
    if isinstance(value, str) and value in KeyPolicy.__members__:
        return KeyPolicy(value)
    known = ", ".join(f"KeyPolicy.{policy.name}" for policy in KeyPolicy)
    raise InvalidOptionError(f"key_policy must be one of {known}, got {value!r}")


def _check_tenants(value: object) -> frozenset[str] | None:
    if value is None:
        return None
    if isinstance(value, str | bytes) or not isinstance(value, Collection) or not value:
        raise InvalidOptionError(
            f"tenants must be a collection of at least one tenant, e.g. {{'acme', 'globex'}}, got {value!r}; "
            "leave it out to allow all"
        )
    return frozenset(check_key(tenant, "tenants: a tenant") for tenant in value)


def _limit(name: str) -> Callable[[object], int | None]:
    def check(value: object) -> int | None:
        if value is None or (isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 2**31 - 1):
            return value
        raise InvalidOptionError(f"{name} must be a whole number from 1 on, or None for no limit, got {value!r}")

    return check


def _check_subscribe(value: object) -> str | None:
    return None if value is None else check_label(value, "subscribe", MAX_NAME)


_CHECKS: Final[Mapping[str, Callable[[object], Any]]] = {
    "dlq": check_switch("dlq"),
    "max_rejected": _check_max_rejected,
    "include_payload": _check_include_payload,
    "sink": checked_sink,
    "sink_failure": _check_sink_failure,
    "key_policy": _check_key_policy,
    "tenants": _check_tenants,
    "require_tenant": check_switch("require_tenant"),
    "tenant_concurrency": _limit("tenant_concurrency"),
    "queue": check_queue,
    "priority": parse_priority,
    "subscribe": _check_subscribe,
    "max_in_flight": _limit("max_in_flight"),
}
