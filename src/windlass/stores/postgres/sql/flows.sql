-- Differs by need: other transactions count members of the same group at the same time; and plans are kept by sessions that made them
-- while the tables were empty, so the statements of the hot path leave the planner little to choose.

-- name: counted_members :arrays
id id, succeeded integer, failed integer

-- Rows are looked up by lists of ids, for one way to follow at a time: as a join, planned for empty tables, it read the index of followers
-- once for each row that was not released; planned for full ones, it read all of them. Not by ctid: a follower that was paused while this
-- waited for its lock is another row then, which the statement does not see. The update locks rows in the order of their ids.
-- `later` has the few followers with a delay or a time of their own. For one that awaits a signal that is its deadline, which counts
-- only while it waits: its status is that of the row as it is after this has waited for its lock.
-- name: release_followers :rows
WITH follower AS MATERIALIZED (
    SELECT f.job_id, f.due_at, f.delay_us FROM windlass_flow f WHERE f.parent_id {in_ids} AND f.follows = :follows
), unreleased AS MATERIALIZED (
    SELECT id FROM windlass_hot WHERE id = ANY(ARRAY(SELECT job_id FROM follower)) AND due IS NULL ORDER BY id LIMIT :most
), later AS MATERIALIZED (
    SELECT jsonb_object_agg(
        CASE WHEN EXISTS (SELECT 1 FROM windlass_signal_wait w WHERE w.job_id = f.job_id) THEN f.job_id || ' WAITING' ELSE f.job_id::text END,
        greatest(f.due_at, {now} + coalesce(f.delay_us, 0))
    ) AS dues
    FROM follower f WHERE f.due_at IS NOT NULL OR f.delay_us IS NOT NULL
), due AS (
    UPDATE windlass_hot SET due = coalesce(
        ((SELECT dues FROM later) ->> id::text)::bigint,
        CASE WHEN status = 'WAITING' THEN ((SELECT dues FROM later) ->> (id || ' WAITING'))::bigint END,
        {now}
    )
    WHERE id = ANY(ARRAY(SELECT id FROM unreleased)) AND due IS NULL RETURNING queue, priority
)
SELECT queue, priority, count(*) FROM due GROUP BY queue, priority

-- By the list of ids, for the same reasons.
-- name: release_branches :rows
WITH later AS MATERIALIZED (
    SELECT jsonb_object_agg(
        CASE WHEN EXISTS (SELECT 1 FROM windlass_signal_wait w WHERE w.job_id = f.job_id) THEN f.job_id || ' WAITING' ELSE f.job_id::text END,
        greatest(f.due_at, {now} + coalesce(f.delay_us, 0))
    ) AS dues
    FROM windlass_flow f WHERE f.job_id {in_ids} AND (f.due_at IS NOT NULL OR f.delay_us IS NOT NULL)
)
UPDATE windlass_hot SET due = coalesce(
    ((SELECT dues FROM later) ->> id::text)::bigint,
    CASE WHEN status = 'WAITING' THEN ((SELECT dues FROM later) ->> (id || ' WAITING'))::bigint END,
    {now}
)
WHERE id {in_ids} AND due IS NULL RETURNING id, queue, priority

-- Counts under the group's lock if that is free, and else stores a row in windlass_group_delta: a flush never waits for another one. The
-- last column is 0 for a group whose count was stored so; `settle` counts it after the commit.
-- name: count_members :rows
WITH counted AS MATERIALIZED (
    SELECT id, succeeded, failed FROM {counted_members} m
), mine AS MATERIALIZED (
    SELECT g.id FROM counted c JOIN windlass_group g ON {g.id = c.id} ORDER BY c.id FOR UPDATE OF g SKIP LOCKED
), noted AS (
    DELETE FROM windlass_group_delta t USING mine m WHERE t.group_id = m.id RETURNING t.group_id, t.succeeded, t.failed
), updated AS (
    UPDATE windlass_group g SET succeeded = g.succeeded + s.succeeded, failed = g.failed + s.failed, touched_at = {now},
        told_at = CASE WHEN g.kind = 2 AND abs(g.told_at) <= {now} - 1000000 THEN -{now} ELSE abs(g.told_at) END
    FROM (
        SELECT a.id, sum(a.succeeded) AS succeeded, sum(a.failed) AS failed FROM (
            SELECT c.id, c.succeeded, c.failed FROM counted c JOIN mine m ON m.id = c.id
            UNION ALL SELECT n.group_id, n.succeeded, n.failed FROM noted n
        ) a GROUP BY a.id
    ) s WHERE {g.id = s.id}
    RETURNING g.id, g.total, g.succeeded, g.failed, g.kind, g.loaded, CASE WHEN g.told_at < 0 THEN 1 ELSE 0 END AS publish_progress
), owed AS (
    INSERT INTO windlass_group_delta (group_id, succeeded, failed)
    SELECT c.id, c.succeeded, c.failed FROM counted c
    WHERE NOT EXISTS (SELECT 1 FROM mine m WHERE m.id = c.id) AND (SELECT 1 FROM windlass_group g WHERE g.id = c.id) = 1
    RETURNING group_id
)
SELECT id, total, succeeded, failed, kind, loaded, publish_progress, 1 FROM updated
UNION ALL SELECT group_id, 0, 0, 0, 0, 0, 0, 0 FROM owed

-- name: lock_groups :rows
SELECT id FROM windlass_group WHERE id {in_ids} ORDER BY id FOR UPDATE

-- name: lock_operations :rows
SELECT o.id, o.kind, o.detail FROM windlass_operation o WHERE o.id {in_ids} ORDER BY o.id FOR UPDATE SKIP LOCKED
