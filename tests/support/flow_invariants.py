"""What must hold of flows whatever died, asked in SQL past the code under test."""

from tests.support.facts import one, rows

ENDED_MEMBERS = """WITH member AS (
    SELECT group_id, job_id FROM windlass_flow WHERE group_id IS NOT NULL
    UNION ALL SELECT batch_id, id FROM windlass_job WHERE batch_id IS NOT NULL
)
SELECT g.id, g.total,
    g.succeeded + coalesce((SELECT sum(t.succeeded) FROM windlass_group_delta t WHERE t.group_id = g.id), 0),
    g.failed + coalesce((SELECT sum(t.failed) FROM windlass_group_delta t WHERE t.group_id = g.id), 0),
    (SELECT count(*) FROM member m WHERE m.group_id = g.id),
    (SELECT count(*) FROM member m JOIN windlass_done d ON d.id = m.job_id
        WHERE m.group_id = g.id AND d.status = 'SUCCEEDED'),
    (SELECT count(*) FROM member m JOIN windlass_done d ON d.id = m.job_id
        WHERE m.group_id = g.id AND d.status <> 'SUCCEEDED')
FROM windlass_group g"""

RELEASED = """SELECT f.job_id, f.parent_id FROM windlass_flow f
LEFT JOIN windlass_hot h ON h.id = f.job_id LEFT JOIN windlass_done d ON d.id = f.job_id
WHERE f.follows = 1 AND (h.due IS NOT NULL OR d.status IN ('SUCCEEDED', 'FAILED'))"""
"""Followers of a success that were released."""

NOT_SUCCEEDED = """SELECT j.id FROM windlass_job j
    WHERE NOT EXISTS (SELECT 1 FROM windlass_done d WHERE d.id = j.id AND d.status = 'SUCCEEDED')
UNION ALL SELECT g.id FROM windlass_group g WHERE g.succeeded < g.total"""

RAN_THOUGH_CANCELED = """SELECT d.id FROM windlass_done d
WHERE d.canceled_by IS NOT NULL AND EXISTS (SELECT 1 FROM windlass_attempt a WHERE a.job_id = d.id)
    AND NOT EXISTS (SELECT 1 FROM windlass_flow f WHERE f.job_id = d.id AND f.follows = 6)"""
"""A guarded follower is canceled by its own attempt, which does not enter the body."""

WITHOUT_CAUSE = """SELECT id FROM windlass_done WHERE canceled_by IS NULL
    AND reason IN ('upstream_failed', 'upstream_canceled', 'not_chosen', 'predicate_failed')"""

LEFT_WAITING = """SELECT f.job_id FROM windlass_flow f JOIN windlass_hot h ON h.id = f.job_id
WHERE h.due IS NULL AND (
    EXISTS (SELECT 1 FROM windlass_done d WHERE d.id = f.parent_id)
    OR EXISTS (SELECT 1 FROM windlass_group g WHERE g.id = f.parent_id AND g.kind = 1
        AND (g.succeeded + g.failed >= g.total OR (g.failed > 0 AND f.follows = 1))))"""

STARTED_EARLY = """SELECT f.job_id FROM windlass_flow f JOIN windlass_hot h ON h.id = f.job_id
WHERE f.parent_id IS NULL AND h.due IS NULL AND h.target <> 'windlass:batch'"""

DISAGREEING = """SELECT g.id, g.total, g.succeeded, g.failed, g.loaded, coalesce(d.status, h.status)
FROM windlass_group g LEFT JOIN windlass_done d ON d.id = g.id LEFT JOIN windlass_hot h ON h.id = g.id
WHERE g.kind = 2 AND CASE
    WHEN d.status = 'SUCCEEDED' THEN g.loaded <> 1 OR g.failed > 0 OR g.succeeded < g.total
    WHEN d.status = 'FAILED' THEN g.loaded <> 1 OR g.failed = 0 OR g.succeeded + g.failed < g.total
    WHEN d.status = 'CANCELED' THEN g.id IS NULL
    ELSE g.loaded = 1 AND g.succeeded + g.failed >= g.total END"""
"""Batches that have ended although their counts have not, or the other way round."""


def check_flows(url: str) -> None:
    """Everything that holds of flows whenever no write is in progress."""
    for group, total, succeeded, failed, members, really_succeeded, really_failed in rows(url, ENDED_MEMBERS):
        assert total == members, f"group {group} has {members} members, and {total} are stored"
        counted, ended = (succeeded, failed), (really_succeeded, really_failed)
        assert counted == ended, f"group {group} counts {counted}, {ended} members have ended (succeeded, failed)"
    waits_for = dict(rows(url, RELEASED))
    early = {job for (job,) in rows(url, NOT_SUCCEEDED)} & set(waits_for.values())
    assert early == set(), "followers were released before the success that they follow"
    assert rows(url, RAN_THOUGH_CANCELED) == [], "followers ran and were canceled by what is before them"
    assert rows(url, WITHOUT_CAUSE) == [], "followers were canceled without a cause, and no retry would revive them"
    assert rows(url, DISAGREEING) == [], "batches whose state is not that of their counts"
    assert rows(url, STARTED_EARLY) == [], "jobs that follow nothing have no due time"


def nothing_is_left(url: str) -> bool:
    """Whether every count is settled, and every operation carried out."""
    noted = one(url, "SELECT count(*) FROM windlass_group_delta")
    return noted == 0 and one(url, "SELECT count(*) FROM windlass_operation") == 0


def check_settled_flows(url: str) -> None:
    """What also holds once no work is left: each follower was released or canceled."""
    check_flows(url)
    assert nothing_is_left(url), "counts or operations are left"
    assert rows(url, LEFT_WAITING) == [], "followers wait for what has ended"


def followers(url: str) -> set[object]:
    """The jobs that follow others. Each revival raises the fence of one that never ran."""
    return {job for (job,) in rows(url, "SELECT job_id FROM windlass_flow WHERE parent_id IS NOT NULL")}
