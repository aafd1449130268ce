"""Why a job is not running: a pure function of the job, its queue, its gates and the nodes, as the store has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from windlass.domain.batch import BatchState, LoadState
from windlass.domain.clock import from_micros
from windlass.domain.gates import Gate, free_permits, worth_a_look
from windlass.domain.lanes import (
    CIRCUIT,
    MOST_LANES,
    QUEUE,
    Lane,
    needed_targets,
    read_lane,
    schedule_gate,
    target_named,
)
from windlass.domain.states import JobStatus
from windlass.domain.targets import how_to_import

NEVER: Final = 2**62


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a job is not running, from `app.explain(id)`: `code` for programs, `message` for people."""

    code: str
    """The first reason that applies: `not_due`, `queue_paused`, `permit_full` … (see the documentation for all)."""
    message: str
    until: datetime | None = None
    """When that ends by itself, if known."""


class WaitingJob(NamedTuple):
    """The fields of a job that matter here."""

    status: JobStatus
    queue: str
    target: str
    lane: str | None
    due_at: int | None
    attempts: int
    error: str | None
    node: str | None
    picked_at: int | None
    reason: str | None
    finished_at: int | None
    paused_from: str | None
    expires: int | None = None
    batch: BatchState | None = None
    """Counts of a batch."""
    signal_key: str | None = None
    """The key of the signal that it awaits."""


class Conditions(NamedTuple):
    """The other conditions that decide whether it runs."""

    now: int
    queue_paused: bool
    gates: Mapping[str, Gate]
    node_queues: Sequence[tuple[str, ...] | None]
    """For every live node the queues it serves; None: all of them."""
    many_lanes: bool = False
    """Whether more lanes have waiting jobs than a worker checks at a time."""


def explain(job: WaitingJob, around: Conditions) -> Explanation:
    """Return the first reason why the job does not run, or that nothing holds it back."""
    if job.status is not JobStatus.PENDING:
        found = _not_waiting(job)
    elif job.batch is not None:
        found = _waits_for_children(job.batch)
    else:
        found = next(_reasons(job, around), None) or _ready(job, around)
    if job.expires is None or job.status is JobStatus.RUNNING:
        return found
    return _with_expiry(found, job.expires, around)


def _with_expiry(found: Explanation, expires: int, around: Conditions) -> Explanation:
    if expires <= around.now:
        return Explanation("expired", f"it has expired{_when('at', expires)}, and is about to be canceled")
    message = f"{found.message}; it is canceled unless it has started{_when('by', expires)}"
    return Explanation(found.code, message, found.until)


def _not_waiting(job: WaitingJob) -> Explanation:
    match job.status:
        case JobStatus.RUNNING:
            return Explanation("running", f"it runs on node {job.node}{_when('since', job.picked_at)}")
        case JobStatus.PAUSED:
            left = f" (it was {job.paused_from})" if job.paused_from else ""
            return Explanation("paused", f"it is paused{left}; resume it to continue")
        case JobStatus.WAITING:
            return _for_signal(job)
        case JobStatus.FAILED:
            return Explanation(
                "failed", f"it failed for good{_when('at', job.finished_at)} ({job.reason}); retry it to start it over"
            )
        case _:
            status = job.status.value.lower()
            why = "" if job.reason is None or job.reason == status else f" ({job.reason})"
            return Explanation(status, f"it has ended: {status}{_when('at', job.finished_at)}{why}")


def _waits_for_children(batch: BatchState) -> Explanation:
    counts = batch.counts
    ended = f"{counts.succeeded + counts.failed:,} of {counts.total:,} children have ended"
    if counts.loaded == LoadState.OPEN:
        last = f"the last of them{_when('at', batch.stored_at)}" + (f" by {batch.loader}" if batch.loader else "")
        return Explanation(
            "loading",
            f"it is still loaded: {counts.total:,} items are stored, {last}; {ended}. If its loader is gone, enqueue "
            "it again with its idempotency_key or with resume=, or cancel it",
        )
    return Explanation("waiting_for_children", f"it runs nothing itself: {ended}")


def _for_signal(job: WaitingJob) -> Explanation:
    what = "it waits for a signal" if job.signal_key is None else f"it waits for the signal {job.signal_key!r}"
    if job.due_at is None:
        return Explanation("waiting_for_signal", f"{what}, and follows another job, which has not ended yet")
    if job.due_at >= NEVER:
        return Explanation("waiting_for_signal", f"{what}, without a timeout")
    message = f"{what}; it fails unless that comes{_when('by', job.due_at)}"
    return Explanation("waiting_for_signal", message, from_micros(job.due_at))


def _reasons(job: WaitingJob, around: Conditions) -> Iterator[Explanation]:
    """Yield the reasons that hold a waiting job back, in the order in which they apply."""
    now, lane = around.now, read_lane(job.lane)
    if job.due_at is None:
        yield Explanation("not_released", "it follows another job, which has not ended yet")
    elif job.due_at > now:
        yield _not_due(job, job.due_at)
    if around.queue_paused:
        yield Explanation("queue_paused", f"queue {job.queue} is paused; resume the queue to run its jobs")
    if not around.node_queues:
        yield Explanation("no_worker", "no worker is alive; start one: windlass worker <module>:<app>")
    elif not any(queues is None or job.queue in queues for queues in around.node_queues):
        yield Explanation("no_worker_for_queue", f"no worker that is alive serves queue {job.queue}")
    if lane.target is not None:
        yield Explanation(
            "target_unknown",
            f"the workers that took it do not know {target_named(lane.target)}, so it waits for one that does; "
            f"deploy it, or {how_to_import(needed_targets(lane.target)[0])}; or cancel the job",
        )
    yield from _gates(job, lane, around)


def _not_due(job: WaitingJob, due: int) -> Explanation:
    if job.attempts:
        attempts = "attempt has" if job.attempts == 1 else "attempts have"
        return Explanation(
            "waiting_for_retry",
            f"it waits for its next attempt, {job.attempts} {attempts} failed: {job.error}",
            from_micros(due),
        )
    return Explanation("not_due", "it is not due yet", from_micros(due))


def _gates(job: WaitingJob, lane: Lane, around: Conditions) -> Iterator[Explanation]:
    now = around.now
    circuit = around.gates.get(CIRCUIT + lane.circuit) if lane.circuit is not None else None
    if circuit is not None and circuit.opens_at is not None:
        yield from _circuit(lane.circuit or "", circuit, circuit.opens_at, now)
    if lane.resource_gate is not None:
        gate = around.gates.get(lane.resource_gate)
        what = f"resource {lane.resource}" + (f" for {lane.resource_key}" if lane.resource_key is not None else "")
        if gate is None:
            yield Explanation(
                "unknown_resource", f"no resource {lane.resource} is configured: it will fail when claimed"
            )
        else:
            yield from _full(gate, now, what, "permit_full", "rate_limited")
    line = around.gates.get(schedule_gate(lane.schedule)) if lane.schedule is not None else None
    if line is not None and free_permits(line, now) == 0:
        yield Explanation("schedule_overlap", "an earlier run of its schedule has not ended, and they run one by one")
    limit = around.gates.get(QUEUE + job.queue)
    if limit is not None:
        yield from _full(limit, now, f"queue {job.queue}", "queue_full", "queue_rate_limited")


def _circuit(service: str, gate: Gate, opens_at: int, now: int) -> Iterator[Explanation]:
    if opens_at >= NEVER:
        yield Explanation("circuit_open", f"the circuit of {service} was opened by hand; close it to run its jobs")
    elif opens_at > now:
        yield Explanation("circuit_open", f"the circuit of {service} is open", from_micros(opens_at))
    elif free_permits(gate, now) == 0:
        yield Explanation("circuit_on_trial", f"the circuit of {service} waits for the outcome of its trials")


def _full(gate: Gate, now: int, what: str, full: str, too_fast: str) -> Iterator[Explanation]:
    if gate.cap is not None and gate.in_use >= gate.cap:
        jobs = "job" if gate.cap == 1 else "jobs"
        yield Explanation(full, f"{what} lets {gate.cap} {jobs} run at a time, and has {gate.in_use}")
    elif free_permits(gate, now) == 0:
        yield Explanation(
            too_fast, f"{what} has let through as many as its rate allows", from_micros(worth_a_look(gate, now))
        )


def _ready(job: WaitingJob, around: Conditions) -> Explanation:
    message = (
        f"nothing holds it back: it is next when a worker of queue {job.queue} has a slot and those before it are taken"
    )
    if around.many_lanes:
        message += (
            f"; jobs wait behind more than {MOST_LANES} limits and keys, of which a worker looks at {MOST_LANES} at a"
            " time, so jobs behind others may start before it"
        )
    return Explanation("ready", message)


def _when(preposition: str, moment: int | None) -> str:
    return "" if moment is None else f" {preposition} {from_micros(moment):%Y-%m-%d %H:%M:%S} UTC"
