"""Plans for queues: the heads that a claim uses, and the depths of queues."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from windlass.domain.gates import Gate, worth_a_look
from windlass.domain.lanes import CIRCUIT, MOST_LANES, QUEUE, general_gate, read_lane
from windlass.domain.suggestions import closest
from windlass.errors import UnknownQueueError
from windlass.stores.claim_order import Head, JobPosition, Starts, is_time
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan, Step
from windlass.stores.plans.statistics import NOTHING, QueueTotals, last_hour

FIRST_LANE = ("", "")
SHUT_CIRCUIT = -1
"""Replaces the level in rows of circuits."""


class Heads(NamedTuple):
    """When every level and lane with jobs should be checked, as of `now` by the store's clock."""

    now: int
    heads: list[Head]
    queues: frozenset[str]
    """Queues that are served and not paused, with or without jobs."""
    limited: frozenset[str] = frozenset()
    """Queues that have a limit."""
    held: bool = False
    """Whether a gate holds back due jobs."""
    shut: Mapping[str, int] = MappingProxyType({})
    """All circuits that let nothing through, and until when."""
    after: tuple[str, str] = FIRST_LANE
    """Where to continue if not all lanes were checked; the first one if all were."""
    walked: int = 0
    """Number of index entries that were read to find the heads, where the database counts them."""


def heads(
    dialect: Dialect,
    serves: Callable[[str], bool],
    knows: Callable[[str], bool],
    after: tuple[str, str] = FIRST_LANE,
    starts: Starts = MappingProxyType({}),
) -> Plan[Heads]:
    """Return the heads of every queue served and not paused, and of the next lanes whose target is known here.

    `starts` is where to begin reading levels whose first entries are known to be dead.
    Due jobs that a gate holds back are to be checked when the gate is.
    """
    found_rows = yield from dialect.heads(starts)
    rows = [row for row in found_rows if row[1] != SHUT_CIRCUIT]
    shut = {row[0].removeprefix(CIRCUIT): row[2] for row in found_rows if row[1] == SHUT_CIRCUIT}
    now, any_lanes, walked = next((due, flag, walked) for queue, _, due, flag, _, walked in rows if queue is None)
    open_to_us = frozenset(row[0] for row in rows if row[0] is not None and serves(row[0]))
    limited = frozenset(row[0] for row in rows if row[0] in open_to_us and row[3])
    # A text stored as a due time is kept by SQLite, which sorts it after all times.
    found = [
        Head(queue, level, due, None, None if job is None else JobPosition(due, job))
        for queue, level, due, _, job, _ in rows
        if queue in open_to_us and is_time(due)
    ]
    if any_lanes:
        lanes = yield from dialect.waiting_lanes(after, MOST_LANES)
        after = lanes[-1].position if len(lanes) == MOST_LANES else FIRST_LANE
        found += [
            Head(lane.queue, level, due, lane.lane)
            for lane in lanes  # the target first: it is known even while the queue is paused
            if ((target := read_lane(lane.lane).target) is None or knows(target)) and lane.queue in open_to_us
            for level, due in lane.dues.items()
        ]
    if not any_lanes and not limited:
        return Heads(now, found, open_to_us, shut=shut, walked=walked)
    gates = yield from _gates_of(dialect, found, limited)
    kept = [head._replace(due_at=_worth_a_look(head, gates, now)) for head in found]
    held = any(one.due_at <= now < other.due_at for one, other in zip(found, kept, strict=True))
    return Heads(now, kept, open_to_us, limited, held, shut, after if any_lanes else FIRST_LANE, walked)


def _gates_of(dialect: Dialect, heads: Sequence[Head], limited: Collection[str]) -> Plan[dict[str, Gate]]:
    names = {name for head in heads for name in _gates(head) if not name.startswith(QUEUE) or head.queue in limited}
    if not names:
        return {}
    return (yield from gates_named(dialect, sorted(names)))


def gates_named(dialect: Dialect, names: Sequence[str]) -> Plan[dict[str, Gate]]:
    """Return gates as they are now. A key that was never used has the permits of its resource, all of them free."""
    wanted = sorted({*names, *map(general_gate, names)})
    rows = yield Step("read_gates", {"names": dialect.names(wanted)}, autocommit=True)
    found = {row[0]: Gate._make(row) for row in rows}
    return {
        name: found[name] if name in found else found[general_gate(name)]._replace(in_use=0, taken=None)
        for name in names
        if general_gate(name) in found
    }


def _gates(head: Head) -> tuple[str, ...]:
    return (QUEUE + head.queue, *read_lane(head.lane).gates)


def _worth_a_look(head: Head, gates: Mapping[str, Gate], now: int) -> int:
    return max([head.due_at, *(worth_a_look(gates[name], now) for name in _gates(head) if name in gates)])


class Depth(NamedTuple):
    """A queue and its counts."""

    name: str
    paused: bool
    waiting: int
    running: int
    first_due: int | None
    cap: int | None
    rate: int | None
    per_us: int | None
    last_hour: QueueTotals


def depths(dialect: Dialect) -> Plan[list[Depth]]:
    """Return every queue, by name, in as many statements for one as for a thousand.

    Waiting jobs are counted up to a limit: the cost must not grow with the depth of a queue.
    """
    running = dict((yield Step("running_by_queue")))
    counted = yield from last_hour(dialect)
    yield Step("walk_indexes")
    return [
        Depth(name, bool(paused), waiting, running.get(name, 0), due, cap, rate, per_us, counted.get(name, NOTHING))
        for name, paused, waiting, due, cap, rate, per_us in (yield Step("queue_depths"))
    ]


def check_known(dialect: Dialect, name: str, declared: Collection[str] | None) -> Plan[None]:
    """Refuse a queue that is neither in the store nor among those declared; None checks nothing."""
    del dialect
    if declared is None or name in declared:
        return
    stored = [queue for queue, _ in (yield Step("list_queues"))]
    if name not in stored:
        raise UnknownQueueError(name, closest(name, {*declared, *stored}))
