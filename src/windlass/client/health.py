"""Health of an application: its store answers, the schema is current, workers are alive and do their work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from windlass.domain.clock import MICROSECONDS
from windlass.domain.dispatch_lag import quantile
from windlass.domain.durations import seconds
from windlass.errors import StoreUnavailableError, WindlassError
from windlass.stores import migrate
from windlass.stores.database import Database
from windlass.stores.migrate import Migration
from windlass.stores.plans import cluster, leases

LATE_AFTER = 6
"""Number of passes that the sweeper may miss before it counts as late."""
LATE_AT_LEAST = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What `app.health()` found out; true in a condition when all is well: `if not app.health(): alarm()`."""

    store: str
    """Dialect and location of the store, without credentials."""
    store_answers: bool
    schema_current: bool
    workers: int
    """Nodes that hold their lease and, if `max_age` was given, had a recent heartbeat."""
    sweeper_age: float | None = None
    """Seconds since the sweeper's last pass; None before its first."""
    dispatch_lag_p50: float | None = None
    """Seconds between being due and being claimed, of jobs and parts of executions that live workers claimed in the
    last minute or two: half of them waited no longer. None if none was claimed."""
    dispatch_lag_p95: float | None = None
    """The same: 95 of 100 waited no longer."""
    reason: str = ""
    """What is wrong and what to do about it; empty if nothing is."""

    def __bool__(self) -> bool:
        return not self.reason


def examine(database: Database, max_age: float | timedelta | None = None, sweep_interval: float = 10.0) -> Health:
    """Examine a store without changing it, not even to create its schema."""
    age = None if max_age is None else seconds(max_age, "max_age")
    late_us = int(max(LATE_AFTER * sweep_interval, LATE_AT_LEAST) * MICROSECONDS)
    try:
        return _examined(database, age, late_us)
    except WindlassError as error:
        answers = not isinstance(error, StoreUnavailableError)
        return Health(
            store=database.description, store_answers=answers, schema_current=False, workers=0, reason=str(error)
        )


def _examined(database: Database, age: float | None, late_us: int) -> Health:
    store = database.description
    database.require()
    missing = migrate.pending(database)
    if missing:
        reason = _outdated(database, missing)
        return Health(store=store, store_answers=True, schema_current=False, workers=0, reason=reason)
    workers = database.read(cluster.live_nodes, None if age is None else int(age * MICROSECONDS))
    swept = database.read(leases.last_pass, leases.SWEEPER)
    lags = database.read(cluster.dispatch_lags)
    reason = "" if workers else _lonely(age)
    if workers and (failing := database.read(cluster.failing_nodes)):
        reason = _failing(failing)
    elif workers and swept is not None and swept.late(late_us):
        reason = "workers are alive, but their sweeper does not pass; look for its errors in their logs"
    since = None if swept is None or swept.age_us is None else swept.age_us / MICROSECONDS
    return Health(
        store=store,
        store_answers=True,
        schema_current=True,
        workers=workers,
        sweeper_age=since,
        dispatch_lag_p50=quantile(lags, 0.5),
        dispatch_lag_p95=quantile(lags, 0.95),
        reason=reason,
    )


def _outdated(database: Database, missing: Sequence[Migration]) -> str:
    if database.migrates_itself and len(missing) == len(migrate.migrations(database.dialect.name)):
        return (
            "it has never been used: no job was stored and no worker ran; start one with `windlass worker module:app`"
        )
    names = ", ".join(migration.name for migration in missing)
    if database.migrates_itself:
        return f"the schema lacks {names}; a worker of this version brings it up to date when it starts"
    return f"the schema lacks {names}; run `windlass migrate module:app`"


def _failing(nodes: Sequence[tuple[str, str]]) -> str:
    node, error = nodes[0]
    more = f" ({len(nodes) - 1} more nodes fail, too)" if len(nodes) > 1 else ""
    return f"node {node} keeps failing with errors that are not an outage{more}: {error}"


def _lonely(age: float | None) -> str:
    if age is None:
        return "no worker is alive; start one with `windlass worker module:app`"
    return f"no worker had a heartbeat in the last {age:g} s; look at `windlass node list`, or start one"
