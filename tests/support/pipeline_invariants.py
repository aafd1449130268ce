"""What must hold of executions of pipelines whatever died, asked in SQL past the code under test."""

from collections import Counter
from typing import Any

from tests.support.facts import now_of, one, rows
from tests.support.invariants import check_gates

ENDED_ITEM = {2, 4, 6}
"""Done, rejected, expanded."""


def check_executions(url: str) -> None:
    """Everything that is true whenever there are no writers: V1 to V8."""
    found = broken_rules(url)
    assert not found, found
    check_gates(url)


def broken_rules(url: str) -> dict[str, list[Any]]:
    """The rules that do not hold, with what breaks them."""
    checks = {
        "V1 versions have no gaps": _gaps(url),
        "V1 the version of the row is that of the log": rows(url, _VERSIONS),
        "V2 a step is finished once": _finished_twice(url),
        "V3 an execution is open if, and only if, its main job lives": rows(url, _MAINS),
        "V4 a dead execution has a dead letter, and no other": _letters(url),
        "V5 parts have live jobs": rows(url, _DANGLING),
        "V5 an open execution waits for something": rows(url, _WAITING),
        "V5 parts of ended executions have no jobs": rows(url, _ORPHANS),
        "V6 all items of an ended execution have ended": _items(url),
        "V6 rejected items are rejects": _rejects(url),
        "V9 nothing waits for an ended execution": rows(url, _WAITS),
        "V9 an item waits outside if, and only if, its wait is open": rows(url, _OUTSIDE),
        "V7 what was handed over to a pipeline is an execution of its own": rows(url, _HANDED_OVER),
        "V7 an execution of a hand-off has that one": rows(url, _HANDOFFS),
        "V7 a hand-off keeps its payload while it waits": rows(url, _SETTLED),
        "V7 a key is handed over once": rows(url, _REPEATED),
        "V7 two hand-offs are not one execution": rows(url, _SHARED),
        "V7 what was handed over is of a success, or of a stored chunk": rows(url, _TOO_EARLY),
        "V8 what runs has a live node": rows(url, _RUNNING.format(now=now_of(url))),
    }
    return {rule: broken for rule, broken in checks.items() if broken}


_VERSIONS = """SELECT e.id, e.row_version, t.version FROM windlass_execution e
    LEFT JOIN (SELECT execution_id, max(version) AS version FROM windlass_transition GROUP BY execution_id) t
        ON t.execution_id = e.id WHERE t.version IS NULL OR t.version <> e.row_version"""
_MAINS = """SELECT e.id, e.status, h.status FROM windlass_execution e LEFT JOIN windlass_hot h ON h.id = e.id
    WHERE (e.status = 'OPEN' AND h.id IS NULL) OR (e.status <> 'OPEN' AND h.id IS NOT NULL)"""
_DANGLING = """SELECT p.execution_id, p.lo, p.job_id FROM windlass_part p
    JOIN windlass_execution e ON e.id = p.execution_id LEFT JOIN windlass_hot h ON h.id = p.job_id
    WHERE e.status = 'OPEN' AND p.job_id IS NOT NULL AND h.id IS NULL"""
_WAITING = """SELECT e.id FROM windlass_execution e JOIN windlass_hot h ON h.id = e.id
    WHERE e.status = 'OPEN' AND e.paused = 0 AND h.status = 'PENDING' AND h.due IS NULL AND (e.failing IS NOT NULL
        OR NOT EXISTS (
            SELECT 1 FROM windlass_part p JOIN windlass_hot l ON l.id = p.job_id WHERE p.execution_id = e.id))"""
_ORPHANS = """SELECT p.execution_id, p.job_id FROM windlass_part p JOIN windlass_execution e ON e.id = p.execution_id
    WHERE e.status <> 'OPEN' AND p.job_id IS NOT NULL"""
_WAITS = """SELECT w.execution_id, w.step, w.path FROM windlass_external_wait w
    JOIN windlass_execution e ON e.id = w.execution_id WHERE w.status = 'WAITING' AND e.status <> 'OPEN'"""
_OUTSIDE = """SELECT i.execution_id, i.path, i.status, w.status FROM windlass_item i
    JOIN windlass_execution e ON e.id = i.execution_id AND e.stage = i.stage LEFT JOIN windlass_external_wait w
        ON w.execution_id = i.execution_id AND w.step = i.cursor AND w.path = i.path AND w.status = 'WAITING'
    WHERE e.status = 'OPEN' AND (i.status = 3) <> (w.status IS NOT NULL)"""
_HANDED_OVER = """SELECT h.id, h.execution_id, e.source FROM windlass_handoff h
    LEFT JOIN windlass_execution e ON e.id = h.execution_id WHERE h.status = 'ADMITTED' AND EXISTS (
        SELECT 1 FROM windlass_subscription s
        WHERE s.publication = h.publication AND s.subscriber = h.subscriber AND s.kind = 'pipeline')
    AND (e.id IS NULL OR e.source <> CAST(h.id AS text))"""  # without a source its key was submitted before
_HANDOFFS = """SELECT e.id, e.source, h.status, h.execution_id FROM windlass_execution e
    JOIN windlass_handoff h ON CAST(h.id AS text) = e.source WHERE h.status <> 'ADMITTED' OR h.execution_id <> e.id"""
_SETTLED = """SELECT id, status FROM windlass_handoff
    WHERE (status = 'WAITING') <> (payload IS NOT NULL) OR (status = 'WAITING') <> (settled_at IS NULL)"""
_REPEATED = """SELECT publication, subscriber, tenant, key, count(*) FROM windlass_handoff WHERE status <> 'REJECTED'
    GROUP BY publication, subscriber, tenant, key HAVING count(*) > 1"""
_SHARED = """SELECT publication, subscriber, execution_id, count(*) FROM windlass_handoff WHERE execution_id IS NOT NULL
    GROUP BY publication, subscriber, execution_id HAVING count(*) > 1"""
_TOO_EARLY = """SELECT h.id, h.source_id, e.status FROM windlass_handoff h
    JOIN windlass_execution e ON e.id = h.source_id WHERE e.status <> 'SUCCEEDED' AND NOT EXISTS (
        SELECT 1 FROM windlass_transition t WHERE t.execution_id = e.id AND t.kind = 'published')"""
_RUNNING = """SELECT h.id, h.node FROM windlass_hot h WHERE h.status = 'RUNNING' AND NOT EXISTS (
    SELECT 1 FROM windlass_node n WHERE n.id = h.node AND n.state = 'alive' AND n.lease_until >= {now})"""


def _gaps(url: str) -> list[Any]:
    question = """SELECT execution_id, count(*), min(version), max(version) FROM windlass_transition
        GROUP BY execution_id HAVING count(*) <> max(version) OR min(version) <> 1"""
    return rows(url, question)


def _finished_twice(url: str) -> list[Any]:
    """Steps with more than one boundary, but for executions that were re-driven."""
    question = "SELECT execution_id, step, kind FROM windlass_transition WHERE kind IN ('step', 'staged', 'redriven')"
    finished: Counter[tuple[Any, int]] = Counter()
    redriven: Counter[Any] = Counter()
    for execution, step, kind in rows(url, question):
        if kind == "redriven":
            redriven[execution] += 1
        else:
            finished[execution, step] += 1
    return [place for place, times in finished.items() if times > 1 + redriven[place[0]]]


def _letters(url: str) -> list[Any]:
    """Of executions; none are looked for in a build that does not write them."""
    if one(url, "SELECT count(*) FROM windlass_dead_letter WHERE kind = 'execution'") == 0:
        return []
    dead = {str(row[0]) for row in rows(url, "SELECT id FROM windlass_execution WHERE status = 'DLQ'")}
    letters = {str(row[0]) for row in rows(url, "SELECT job_id FROM windlass_dead_letter WHERE kind = 'execution'")}
    return sorted(dead ^ letters)


def _items(url: str) -> list[Any]:
    """Of executions that have succeeded: as many items as were emitted, all of which have ended."""
    succeeded = {row[0] for row in rows(url, "SELECT id FROM windlass_execution WHERE status = 'SUCCEEDED'")}
    emitted: dict[Any, int] = {}
    question = "SELECT id, emitted FROM windlass_execution WHERE status = 'SUCCEEDED' AND streams = 1"
    emitted.update(rows(url, question))
    found: Counter[Any] = Counter()
    broken = []
    for execution, stage, path, status in rows(url, "SELECT execution_id, stage, path, status FROM windlass_item"):
        if execution not in succeeded:
            continue
        if status not in ENDED_ITEM:
            broken.append((execution, stage, path, status))
        if "." not in path:
            found[execution] += 1
    return broken + [
        (execution, count, found[execution]) for execution, count in emitted.items() if found[execution] < count
    ]


def _rejects(url: str) -> list[Any]:
    items = Counter(str(row[0]) for row in rows(url, "SELECT execution_id FROM windlass_item WHERE status = 4"))
    known = """SELECT r.execution_id FROM windlass_reject r JOIN windlass_item i
        ON i.execution_id = r.execution_id AND i.path = r.item AND i.status = 4"""
    rejects = Counter(str(row[0]) for row in rows(url, known))
    counted = {str(execution): count for execution, count in rows(url, "SELECT id, rejected FROM windlass_execution")}
    return [
        execution for execution, count in items.items() if rejects[execution] != count or counted[execution] < count
    ]
