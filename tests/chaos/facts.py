"""What the oracle is given: the witness's account, and the store's tables read by SQL, past the code under test."""

import json
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from tests.chaos.pipelines import Order
from tests.chaos.witness import Account, Run


class JobRow(NamedTuple):
    """A row of windlass_job: what was asked for."""

    id: str
    target: str
    options: Mapping[str, Any]
    idempotency_key: str | None
    business_key: str | None
    parent_id: str | None

    @property
    def max_retries(self) -> int:
        """As enqueued."""
        return int(self.options.get("max_retries", 0))


class HotRow(NamedTuple):
    """A row of windlass_hot: a job that lives."""

    id: str
    status: str
    fence: int
    node: str | None


class DoneRow(NamedTuple):
    """A row of windlass_done: how a job ended."""

    id: str
    status: str
    fence: int
    attempts: int
    crash_count: int
    result: Any
    error_class: str | None
    reason: str | None


class AttemptRow(NamedTuple):
    """A row of windlass_attempt: what the history says of one claim."""

    job: str
    fence: int
    node: str | None
    outcome: str
    error_class: str | None
    entered: bool
    """Whether its owner wrote it (only the owner knows when the body began), or another node did."""


class GateRow(NamedTuple):
    """A row of windlass_gate: how many may pass, and how many are inside."""

    name: str
    cap: int | None
    in_use: int


class FlowRow(NamedTuple):
    """A row of windlass_flow: what a job follows, and the group that it counts for."""

    job: str
    parent: str | None
    follows: int | None
    group: str | None


class ExecutionRow(NamedTuple):
    """A row of windlass_execution."""

    id: str
    pipeline: str
    key: str | None
    status: str
    source: str | None
    """The hand-off that it was admitted by."""


class HandoffRow(NamedTuple):
    """A row of windlass_handoff: an item on its way to a subscriber."""

    id: str
    subscriber: str
    key: str
    source: str | None
    """The execution that published it."""
    status: str
    execution: str | None
    """The one that it was admitted as."""


class Orphan(NamedTuple):
    """A claim that was seen RUNNING without a live lease, time and again, over `seconds`."""

    job: str
    fence: int
    seconds: float


@dataclass(frozen=True)
class Tables:
    """What the store holds."""

    jobs: Mapping[str, JobRow] = field(default_factory=dict)
    hot: tuple[HotRow, ...] = ()
    done: tuple[DoneRow, ...] = ()
    history: tuple[AttemptRow, ...] = ()
    keys: Mapping[str, str] = field(default_factory=dict)
    """Idempotency keys and the jobs they name."""
    live_keys: Mapping[str, str] = field(default_factory=dict)
    """Business keys and their holders."""
    flow: tuple[FlowRow, ...] = ()
    gates: tuple[GateRow, ...] = ()
    permits: int = 0
    dead_letters: frozenset[str] | None = None
    """Jobs of which there is an envelope; None in a build that keeps none."""
    executions: tuple[ExecutionRow, ...] = ()
    handoffs: tuple[HandoffRow, ...] = ()
    rejects: Mapping[str, int] = field(default_factory=dict)
    """How many items of an execution were rejected."""


@dataclass(frozen=True)
class Facts:
    """Everything there is to judge by."""

    account: Account
    tables: Tables
    began: float
    ended: float
    lease_seconds: float
    """How long a heartbeat is believed, at the base interval."""
    crash_budget: int = 3
    orphans: tuple[Orphan, ...] = ()
    odd_exits: tuple[str, ...] = ()
    """Processes that ended without being stopped, or not cleanly."""
    orders: Mapping[int, Order] = field(default_factory=dict)
    """The executions that were to be submitted, by number."""

    @cached_property
    def done(self) -> Mapping[str, DoneRow]:
        """How jobs ended, by id."""
        return {row.id: row for row in self.tables.done}

    @cached_property
    def hot(self) -> Mapping[str, HotRow]:
        """Jobs that live, by id."""
        return {row.id: row for row in self.tables.hot}

    @cached_property
    def history(self) -> Mapping[str, Mapping[int, AttemptRow]]:
        """What became of each claim: by job, then by fence."""
        found: dict[str, dict[int, AttemptRow]] = defaultdict(dict)
        for row in self.tables.history:
            found[row.job][row.fence] = row
        return found

    @cached_property
    def runs(self) -> Mapping[str, list[Run]]:
        """The runs of each job, by fence."""
        found: dict[str, list[Run]] = defaultdict(list)
        for run in self.account.runs:
            found[run.job].append(run)
        for runs in found.values():
            runs.sort(key=lambda run: run.fence)
        return found

    @cached_property
    def steps(self) -> Mapping[str, list[Run]]:
        """The runs of each step of an execution with each item, in order."""
        found: dict[str, list[Run]] = defaultdict(list)
        for run in sorted(self.account.steps, key=lambda run: run.started):
            found[run.step or ""].append(run)
        return found

    def is_of_pipeline(self, job: str) -> bool:
        """Whether a job runs an execution, or some of its items: its steps are witnessed, and not its claims."""
        row = self.tables.jobs.get(job)
        return row is not None and row.target.startswith("pipeline/")

    def outcome(self, run: Run) -> AttemptRow | None:
        """What the history says of a run."""
        return self.history.get(run.job, {}).get(run.fence)


Ask = Callable[[str], list[tuple[Any, ...]]]
"""Runs a SELECT and gives its rows."""


def read_tables(ask: Ask) -> Tables:
    """Ask the store. Ids come as text from both databases.

    Work may be going on: what has ended is read before what lives, so that no job seems to be both, and history last,
    so that it holds whatever does not live any more.
    """
    return Tables(
        jobs={row.id: row for row in map(_job, ask(_JOBS))},
        done=tuple(_done(row) for row in ask(_DONE)),
        hot=tuple(HotRow(str(row[0]), *row[1:]) for row in ask(_HOT)),
        history=tuple(_attempt(row) for row in ask(_HISTORY)),
        keys={key: str(job) for key, job in ask(_KEYS)},
        live_keys={key: str(job) for key, job in ask("SELECT business_key, holder_id FROM windlass_live_key")},
        flow=tuple(_flow(row) for row in ask("SELECT job_id, parent_id, follows, group_id FROM windlass_flow")),
        gates=tuple(GateRow(*row) for row in ask(_GATES)),
        permits=ask("SELECT count(*) FROM windlass_permit")[0][0],
        dead_letters=frozenset(str(job) for (job,) in ask(_DEAD_LETTERS)),
        executions=tuple(ExecutionRow(*map(_text, row)) for row in ask(_EXECUTIONS)),  # type: ignore[arg-type]
        handoffs=tuple(HandoffRow(*map(_text, row)) for row in ask(_HANDOFFS)),  # type: ignore[arg-type]
        rejects={str(execution): count for execution, count in ask(_REJECTS)},
    )


_KEYS = """SELECT idempotency_key, job_id FROM windlass_key
    UNION ALL SELECT key, id FROM windlass_execution WHERE key IS NOT NULL"""
_EXECUTIONS = "SELECT id, pipeline, key, status, source FROM windlass_execution"
_HANDOFFS = "SELECT id, subscriber, key, source_id, status, execution_id FROM windlass_handoff"
_REJECTS = "SELECT execution_id, count(*) FROM windlass_reject GROUP BY execution_id"
_JOBS = "SELECT id, target, options, idempotency_key, business_key, parent_id FROM windlass_job"
_DEAD_LETTERS = "SELECT job_id FROM windlass_dead_letter"
_HOT = "SELECT id, status, fence, node FROM windlass_hot"
_DONE = "SELECT id, status, fence, attempts, crash_count, result, error_class, reason FROM windlass_done"
_GATES = """SELECT g.name, g.cap, g.in_use - coalesce((
    SELECT CAST(sum(f.places) AS bigint) FROM windlass_freed f WHERE f.gate = g.name), 0) FROM windlass_gate g"""
_HISTORY = """SELECT job_id, fence, node, outcome, error_class, CASE WHEN started_at IS NULL THEN 0 ELSE 1 END
    FROM windlass_attempt"""


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _job(row: tuple[Any, ...]) -> JobRow:
    job, target, options, idempotency_key, business_key, parent = row
    given = json.loads(options) if options else {}
    return JobRow(str(job), target, given, idempotency_key, business_key, str(parent) if parent else None)


def _done(row: tuple[Any, ...]) -> DoneRow:
    job, status, fence, attempts, crashes, result, error_class, reason = row
    decoded = json.loads(result) if result else None
    return DoneRow(str(job), status, fence, attempts, crashes, decoded, error_class, reason)


def _flow(row: tuple[Any, ...]) -> FlowRow:
    job, parent, follows, group = row
    return FlowRow(str(job), str(parent) if parent else None, follows, str(group) if group else None)


def _attempt(row: tuple[Any, ...]) -> AttemptRow:
    job, fence, node, outcome, error_class, entered = row
    return AttemptRow(str(job), fence, node, outcome, error_class, bool(entered))
