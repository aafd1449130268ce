-- Flows: what depends on a job is released, canceled or counted by the transaction that ends the job. Rows are locked in the order of
-- their ids, in which parents come before their followers.

-- name: flow_rows :table
job_id id, flow_id id, parent_id id, follows integer, group_id id, delay_us integer, due_at integer

-- name: insert_flow :count
INSERT INTO windlass_flow ({flow_columns}) SELECT {flow_columns} FROM {flow_rows} f

-- name: group_rows :table
id id, flow_id id, total integer, succeeded integer, failed integer

-- name: insert_groups :count
INSERT INTO windlass_group (id, flow_id, total, succeeded, failed, touched_at)
SELECT id, flow_id, total, succeeded, failed, {now} FROM {group_rows} g

-- Ended parents, each with one way to follow it.
-- name: released :table
parent_id id, follows integer

-- Of a follower that awaits a signal the time is its deadline. It has none if its signal came before its turn.
-- name: has_own_time :fragment
(h.status = 'WAITING' OR NOT EXISTS (SELECT 1 FROM windlass_signal_wait w WHERE w.job_id = f.job_id))

-- name: release_followers :rows
WITH follower AS MATERIALIZED (
    SELECT h.id, CASE WHEN f.due_at IS NULL THEN 0 WHEN {has_own_time} THEN f.due_at ELSE 0 END AS due_at,
        {now} + CASE WHEN f.delay_us IS NULL THEN 0 WHEN {has_own_time} THEN f.delay_us ELSE 0 END AS delayed
    FROM {released} r CROSS JOIN windlass_flow f CROSS JOIN windlass_hot h
    WHERE f.parent_id = r.parent_id AND f.follows = r.follows AND h.id = f.job_id AND h.due IS NULL
    ORDER BY h.id LIMIT :most
)
UPDATE windlass_hot SET due = CASE WHEN f.due_at > f.delayed THEN f.due_at ELSE f.delayed END
FROM follower f WHERE windlass_hot.id = f.id AND windlass_hot.due IS NULL
RETURNING windlass_hot.queue, windlass_hot.priority

-- Ended parents, each with one way to follow it that is not taken, and why.
-- name: passed_by :table
parent_id id, follows integer, cause id, reason text

-- Looked up for each follower: for a join, or a condition on the follower, SQLite would build a filter from the whole table.
-- name: unreleased :fragment
coalesce((SELECT CASE WHEN h.due IS NULL THEN 1 ELSE 0 END FROM windlass_hot h WHERE h.id = f.job_id), 0)

-- Breadth first, and no further than the limit.
-- name: downstream :rows
WITH RECURSIVE down (id, parent_id, group_id, cause, reason, waits) AS (
    SELECT f.job_id, f.parent_id, f.group_id, p.cause, p.reason, {unreleased} FROM {passed_by} p CROSS JOIN windlass_flow f
    WHERE {f.parent_id = p.parent_id} AND f.follows = p.follows
    UNION ALL
    SELECT f.job_id, f.parent_id, f.group_id, d.cause, d.reason, {unreleased} FROM down d CROSS JOIN windlass_flow f
    WHERE {f.parent_id = d.id} AND d.waits = 1
), first AS MATERIALIZED (
    SELECT id, parent_id, group_id, cause, reason FROM down WHERE waits = 1 LIMIT :most
)
SELECT s.id, s.parent_id, s.cause, s.reason, h.status, h.queue, h.priority, h.target, j.correlation_id, s.group_id
FROM first s CROSS JOIN windlass_hot h CROSS JOIN windlass_job j
WHERE {h.id = s.id} AND {j.id = s.id} AND h.due IS NULL ORDER BY s.id {lock_h}

-- name: still_followed :rows
SELECT p.parent_id, p.follows, p.cause, p.reason FROM {passed_by} p
WHERE EXISTS (
    SELECT 1 FROM windlass_flow f WHERE {f.parent_id = p.parent_id} AND f.follows = p.follows AND {unreleased} = 1
)

-- name: canceled_followers :table
id id, cause id, reason text, error text, error_class text

-- name: cancel_followers :count
INSERT INTO windlass_done (id, queue, target, status, fence, attempts, crash_count, due, reason, canceled_by, error, error_class, finished_at)
SELECT h.id, h.queue, h.target, 'CANCELED', h.fence, h.attempts, h.crash_count, h.due, c.reason, c.cause, c.error, c.error_class, {now}
FROM {canceled_followers} c CROSS JOIN windlass_hot h WHERE {h.id = c.id}

-- Branches: 5 is decided by the attempt that ends the parent, 6 by the attempt that runs the follower.

-- name: release_branches :rows
WITH follower AS MATERIALIZED (
    SELECT h.id, CASE WHEN f.due_at IS NULL THEN 0 WHEN {has_own_time} THEN f.due_at ELSE 0 END AS due_at,
        {now} + CASE WHEN f.delay_us IS NULL THEN 0 WHEN {has_own_time} THEN f.delay_us ELSE 0 END AS delayed
    FROM windlass_flow f CROSS JOIN windlass_hot h
    WHERE f.job_id {in_ids} AND h.id = f.job_id AND h.due IS NULL ORDER BY h.id {lock_h}
)
UPDATE windlass_hot SET due = CASE WHEN f.due_at > f.delayed THEN f.due_at ELSE f.delayed END
FROM follower f WHERE windlass_hot.id = f.id AND windlass_hot.due IS NULL
RETURNING windlass_hot.id, windlass_hot.queue, windlass_hot.priority

-- name: undecided_followers :rows
SELECT f.job_id FROM windlass_flow f WHERE f.parent_id {in_ids} AND f.follows = 5 AND {unreleased} = 1 ORDER BY coalesce(f.job_id, f.job_id)

-- name: guard_followers :count
UPDATE windlass_flow SET follows = 6 WHERE job_id {in_ids} AND follows = 5

-- name: unguard_followers :count
UPDATE windlass_flow SET follows = 5 WHERE job_id {in_ids} AND follows = 6

-- name: guarded_followers :rows
SELECT job_id, parent_id FROM windlass_flow WHERE job_id {in_ids} AND follows = 6

-- name: guarded_of_parents :rows
SELECT job_id FROM windlass_flow WHERE parent_id {in_ids} AND follows = 6 ORDER BY coalesce(job_id, job_id)

-- A follower that has not started waits again, as before its parent ended without a decision.
-- name: recall_guarded :rows
UPDATE windlass_hot SET due = NULL
WHERE id {in_ids} AND due IS NOT NULL AND attempts = 0 AND status IN ('PENDING', 'PAUSED', 'WAITING') RETURNING id

-- name: lock_unreleased :rows
SELECT f.job_id, f.parent_id, h.status, h.queue, h.priority, h.target, j.correlation_id, f.group_id
FROM windlass_flow f CROSS JOIN windlass_hot h CROSS JOIN windlass_job j
WHERE f.job_id {in_ids} AND {h.id = f.job_id} AND {j.id = f.job_id} AND h.due IS NULL ORDER BY f.job_id {lock_h}

-- name: cancel_by_parent :rows
UPDATE windlass_done SET canceled_by = (SELECT f.parent_id FROM windlass_flow f WHERE f.job_id = windlass_done.id)
WHERE id {in_ids} RETURNING id, canceled_by

-- name: counted_members :table
id id, succeeded integer, failed integer

-- SQLite has one writer. PostgreSQL overrides this statement.
-- name: count_members :rows
WITH clock AS MATERIALIZED (SELECT {now} AS now)
UPDATE windlass_group SET succeeded = windlass_group.succeeded + c.succeeded, failed = windlass_group.failed + c.failed, touched_at = k.now,
    told_at = CASE WHEN windlass_group.kind = 2 AND abs(windlass_group.told_at) <= k.now - 1000000 THEN -k.now ELSE abs(windlass_group.told_at) END
FROM {counted_members} c CROSS JOIN clock k WHERE {windlass_group.id = c.id}
RETURNING windlass_group.id, windlass_group.total, windlass_group.succeeded, windlass_group.failed, windlass_group.kind,
    windlass_group.loaded, CASE WHEN windlass_group.told_at < 0 THEN 1 ELSE 0 END

-- Followers that a group did not choose stay canceled: all of its members had succeeded. A job that is started over decides about its
-- branches again.
-- name: revivable :rows
SELECT d.id, d.queue, j.priority, d.target, j.correlation_id, j.business_key, f.group_id, {d_unsignaled}
FROM windlass_done d JOIN windlass_job j ON {j.id = d.id} JOIN windlass_flow f ON {f.job_id = d.id}
WHERE d.canceled_by {in_ids} AND d.status = 'CANCELED'
    AND (d.reason <> 'not_chosen' OR coalesce((SELECT 0 FROM windlass_group g WHERE g.id = d.canceled_by AND g.kind = 1), 1) = 1)
ORDER BY d.id LIMIT {most} {lock_d}

-- name: revive_followers :count
INSERT INTO windlass_hot (id, queue, target, lane, status, priority, due, fence, attempts, crash_count)
SELECT d.id, d.queue, d.target, j.lane, 'PENDING', j.priority, NULL, CASE WHEN d.fence < 4611686018427387904 THEN d.fence + 1 ELSE 4611686018427387904 END, 0, 0
FROM windlass_done d JOIN windlass_job j ON {j.id = d.id} WHERE d.id {in_ids}

-- name: counted_for :rows
SELECT m.group_id, count(*) FROM (
    SELECT f.group_id FROM windlass_flow f WHERE f.job_id {in_ids} AND f.group_id IS NOT NULL
    UNION ALL SELECT j.batch_id FROM windlass_job j WHERE j.id {in_ids} AND j.batch_id IS NOT NULL
) m GROUP BY m.group_id ORDER BY m.group_id

-- Groups of the same flows without a failed member, whose followers were canceled when there was one. Not the batch that a flow follows:
-- it is live again only if a child is started over.
-- name: reopened_groups :rows
SELECT DISTINCT coalesce(g.id, g.id) FROM windlass_flow f JOIN windlass_group g ON {g.flow_id = f.flow_id}
WHERE f.job_id {in_ids} AND g.kind = 1 AND g.failed = 0
    AND EXISTS (SELECT 1 FROM windlass_done d WHERE d.canceled_by = g.id AND d.reason <> 'not_chosen')

-- The same before these jobs are taken off the failed members of their groups.
-- name: reopening_groups :rows
SELECT DISTINCT coalesce(g.id, g.id) FROM windlass_flow f JOIN windlass_group g ON {g.flow_id = f.flow_id}
WHERE f.job_id {in_ids} AND g.kind = 1 AND g.failed = (SELECT count(*) FROM windlass_flow m WHERE m.group_id = g.id AND m.job_id {in_ids})
    AND EXISTS (SELECT 1 FROM windlass_done d WHERE d.canceled_by = g.id AND d.reason <> 'not_chosen')
UNION SELECT j.batch_id FROM windlass_job j WHERE j.id {in_ids} AND j.batch_id IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM windlass_done d WHERE d.id = j.batch_id AND d.status = 'CANCELED')

-- name: groups_of_flows :rows
SELECT DISTINCT coalesce(g.id, g.id) FROM windlass_flow f JOIN windlass_group g ON {g.flow_id = f.flow_id} WHERE f.job_id {in_ids}
UNION SELECT j.batch_id FROM windlass_job j WHERE j.id {in_ids} AND j.batch_id IS NOT NULL

-- Operations: the rest of a cascade or a release.

-- name: save_operation :count
INSERT INTO windlass_operation (id, kind, detail, touched_at) VALUES (:id, :kind, :detail, {now})
ON CONFLICT (id) DO UPDATE SET detail = excluded.detail, touched_at = excluded.touched_at

-- name: lock_operations :rows
SELECT o.id, o.kind, o.detail FROM windlass_operation o WHERE o.id {in_ids} ORDER BY o.id

-- name: unfinished_cascades :rows
SELECT id, detail FROM windlass_operation WHERE kind = 'cancel_downstream' ORDER BY id

-- name: delete_operation :count
DELETE FROM windlass_operation WHERE id = :id

-- name: forget_revivals :count
DELETE FROM windlass_operation WHERE kind = 'revive' AND id IN (
    SELECT f.flow_id FROM windlass_flow f WHERE f.job_id {in_ids}
    UNION ALL SELECT j.batch_id FROM windlass_job j WHERE j.id {in_ids} AND j.batch_id IS NOT NULL
)

-- What the sweeper checks again, in windows that move along the keys.

-- name: idle_operations :rows
SELECT id FROM windlass_operation WHERE touched_at < {now} - :idle_us ORDER BY id LIMIT {most}

-- name: active_operations :rows
SELECT kind, detail FROM windlass_operation WHERE kind IN ('release', 'cancel_downstream') AND touched_at >= {now} - :idle_us ORDER BY id LIMIT {most}

-- name: uncounted_groups :rows
SELECT DISTINCT group_id FROM windlass_group_delta LIMIT {most}

-- name: flow_window :row
SELECT job_id FROM windlass_flow WHERE job_id > :after ORDER BY job_id LIMIT 1 OFFSET {window}

-- Jobs that a retry revives in several transactions wait for a failed parent until the last of these is committed.
-- name: not_revived_now :fragment
NOT EXISTS (SELECT 1 FROM windlass_operation o WHERE o.id = f.flow_id AND o.kind = 'revive' AND o.touched_at >= {now} - :idle_us)

-- name: unreleased_of_jobs :rows
SELECT DISTINCT f.parent_id FROM windlass_flow f JOIN windlass_hot h ON {h.id = f.job_id}
WHERE f.job_id > :after AND f.job_id <= :until AND f.parent_id IS NOT NULL AND h.due IS NULL AND (SELECT 1 FROM windlass_done d WHERE d.id = f.parent_id) = 1 AND {not_revived_now}
ORDER BY f.parent_id LIMIT {most}

-- Locked, so that a retry does not start one over while its followers are decided about.
-- name: lock_parents :rows
SELECT d.id, d.status, d.canceled_by, d.reason, d.target FROM windlass_done d WHERE d.id {in_ids} ORDER BY d.id {lock_d}

-- name: unreleased_of_groups :rows
SELECT DISTINCT f.parent_id FROM windlass_flow f JOIN windlass_hot h ON {h.id = f.job_id} JOIN windlass_group g ON {g.id = f.parent_id}
WHERE f.job_id > :after AND f.job_id <= :until AND f.parent_id IS NOT NULL AND h.due IS NULL
    AND g.kind = 1 AND (g.succeeded + g.failed >= g.total OR (g.failed > 0 AND f.follows = 1)) AND {not_revived_now}
ORDER BY f.parent_id LIMIT {most}

-- name: group_window :row
SELECT id FROM windlass_group WHERE id > :after ORDER BY id LIMIT 1 OFFSET {window}

-- name: stalled_groups :rows
SELECT g.id FROM windlass_group g
WHERE g.id > :after AND g.id <= :until AND g.kind = 1 AND g.succeeded + g.failed < g.total AND g.touched_at < {now} - :idle_us
    AND NOT EXISTS (SELECT 1 FROM windlass_group_delta t WHERE t.group_id = g.id)
    AND NOT EXISTS (SELECT 1 FROM windlass_flow f WHERE f.group_id = g.id AND (SELECT 1 FROM windlass_hot h WHERE h.id = f.job_id) = 1)
ORDER BY g.id LIMIT {most}

-- name: recount_members :row
SELECT g.total, g.succeeded, g.failed,
    (SELECT count(*) FROM windlass_flow f JOIN windlass_done d ON {d.id = f.job_id} WHERE f.group_id = g.id AND d.status = 'SUCCEEDED'),
    (SELECT count(*) FROM windlass_flow f JOIN windlass_done d ON {d.id = f.job_id} WHERE f.group_id = g.id AND d.status <> 'SUCCEEDED')
FROM windlass_group g WHERE g.id = :id

-- The results that followers take.

-- name: parents_of :rows
SELECT job_id, parent_id FROM windlass_flow WHERE job_id {in_ids} AND parent_id IS NOT NULL

-- name: results_of_jobs :rows
SELECT {j.job_columns}, {d.state_columns}, {d.end_columns} FROM windlass_job j JOIN windlass_done d ON {d.id = j.id} WHERE j.id {in_ids}

-- name: size_of_results :rows
SELECT f.group_id, CAST(sum(coalesce(length(d.result), 0)) AS {integer}), coalesce((SELECT g.total FROM windlass_group g WHERE g.id = f.group_id), 0)
FROM windlass_flow f JOIN windlass_done d ON {d.id = f.job_id} WHERE f.group_id {in_ids} GROUP BY f.group_id

-- name: values_of_jobs :rows
SELECT id, status, target, queue, result FROM windlass_done WHERE id {in_ids}

-- name: members_of_groups :rows
SELECT f.group_id, f.job_id FROM windlass_flow f WHERE f.group_id {in_ids} ORDER BY f.group_id, f.job_id

-- The graph of a flow.

-- Every job of the flow of one of its jobs. What a job calls is stored beside its state, too.
-- name: flow_nodes :rows
SELECT f.job_id, f.flow_id, f.parent_id, f.follows, f.group_id, coalesce(h.target, d.target), coalesce(h.status, d.status),
    coalesce(h.due, d.due), coalesce(h.picked_at, d.picked_at), d.reason, d.error_class, d.started_at, d.finished_at,
    (SELECT w.key FROM windlass_signal_wait w WHERE w.job_id = f.job_id)
FROM windlass_flow f LEFT JOIN windlass_hot h ON {h.id = f.job_id} LEFT JOIN windlass_done d ON {d.id = f.job_id}
WHERE f.flow_id = (SELECT g.flow_id FROM windlass_flow g WHERE g.job_id = :id) AND (h.id IS NOT NULL OR d.id IS NOT NULL)
ORDER BY f.job_id

-- name: options_of_jobs :rows
SELECT id, options FROM windlass_job WHERE id {in_ids}
