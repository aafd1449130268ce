"""The plan that fails executions which have waited too long behind an open circuit: such jobs are not even claimed."""

from __future__ import annotations

from typing import Final, NamedTuple

from windlass.domain.circuit import CircuitState
from windlass.domain.ended import NO_EFFECTS, Effects, Ended
from windlass.domain.execution import PREFIX
from windlass.domain.lanes import CIRCUIT, MOST_LANES, read_lane
from windlass.domain.states import JobStatus, Move
from windlass.stores.dialect import Dialect
from windlass.stores.ending import FollowUps, end
from windlass.stores.plan import Plan, Step
from windlass.stores.plans import limits, reads
from windlass.stores.plans.unknown_targets import GivenUpFor, give_up

DEFERRED_TOO_LONG: Final = GivenUpFor("circuit_deferral_exhausted", "CircuitOpenError")
LEVELS: Final = 10


class DeferredJobs(NamedTuple):
    """Jobs that were failed, and the effects."""

    failed: list[Ended]
    effects: Effects


def fail_deferred(dialect: Dialect, waited_us: int, follow_ups: FollowUps = ()) -> Plan[DeferredJobs]:
    """Fail jobs of executions that have been due for too long behind a circuit that is not closed."""
    rows = yield from limits.gates(dialect, CIRCUIT)
    shut = {
        row.gate.name.removeprefix(CIRCUIT)
        for row in rows
        if row.circuit is not None and row.circuit.state(row.now) is not CircuitState.CLOSED
    }
    ids: list[str] = []
    after = ("", "")
    while shut and (lanes := (yield from dialect.waiting_lanes(after, MOST_LANES))):
        after = (lanes[-1].queue, lanes[-1].lane)
        for lane in lanes:
            circuit = read_lane(lane.lane).circuit
            if circuit in shut:
                ids += yield from _fail_lane(lane.queue, lane.lane, circuit or "", waited_us)
    if not ids:
        return DeferredJobs([], NO_EFFECTS)
    yield Step("count_ended", {"ids": dialect.ids(ids)})
    failed = yield from reads.failed(dialect, ids, Move.GIVE_UP, JobStatus.PENDING)
    return DeferredJobs(failed, (yield from end(dialect, failed, follow_ups)))


def _fail_lane(queue: str, lane: str, circuit: str, waited_us: int) -> Plan[list[str]]:
    failed: list[str] = []
    error = f"CircuitOpenError: the circuit {circuit!r} was not closed for {waited_us / 1_000_000:g} s"
    for level in range(LEVELS):
        params = {"queue": queue, "lane": lane, "level": level, "waited_us": waited_us}
        for job, fence, target in (yield Step("unknown_targets", params)):
            if target.startswith(PREFIX) and (yield from give_up(job, fence, error, DEFERRED_TOO_LONG)):
                failed.append(job)
    return failed
