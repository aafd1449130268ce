-- Batches: jobs that run nothing, and the group of their children. Plans that add children, or end, cancel or reopen a batch lock the row
-- of its job in windlass_hot first. Plans that count children lock the row of the group, and that of the job only once all are stored.

-- name: insert_batches :count
INSERT INTO windlass_group (id, flow_id, total, succeeded, failed, touched_at, kind, loaded, told_at, stored_at)
SELECT id, id, 0, 0, 0, {now}, 2, 0, {now}, {now} FROM {ids} b

-- name: lock_batch :row
SELECT h.status FROM windlass_hot h WHERE h.id = :id {lock_h}

-- name: batch_state :row
SELECT g.total, g.succeeded, g.failed, g.kind, g.loaded, 0, coalesce(h.status, d.status), g.loader, g.stored_at
FROM windlass_group g LEFT JOIN windlass_hot h ON {h.id = g.id} LEFT JOIN windlass_done d ON {d.id = g.id}
WHERE g.id = :id AND g.kind = 2

-- Only if no child was added since the batch was read: the number of children is also the position in the iterable.
-- name: extend_batch :count
UPDATE windlass_group SET total = total + :added, loader = :loader, touched_at = {now}, stored_at = {now}
WHERE id = :id AND kind = 2 AND loaded = 0 AND total = :seen

-- name: set_loaded :count
UPDATE windlass_group SET loaded = :loaded, touched_at = {now} WHERE id = :id AND kind = 2 AND loaded = :before

-- name: close_batch :count
UPDATE windlass_group SET loaded = 1 WHERE id = :id AND kind = 2

-- Stores the counts of a batch that was canceled.
-- name: keep_progress :count
UPDATE windlass_done SET result = :result WHERE id = :id AND status = 'CANCELED'

-- name: batch_jobs :rows
SELECT j.id, j.queue, j.correlation_id, j.options FROM windlass_job j WHERE j.id {in_ids}

-- name: lock_batches :rows
SELECT h.id FROM windlass_hot h WHERE h.id {in_ids} ORDER BY h.id {lock_h}

-- name: ways_behind :rows
SELECT DISTINCT f.follows FROM windlass_flow f WHERE f.parent_id = :id AND f.follows IS NOT NULL

-- name: ended_batches :table
id id, status text, result text

-- name: end_batches :count
INSERT INTO windlass_done (id, queue, target, status, fence, attempts, crash_count, due, result, reason, finished_at)
SELECT h.id, h.queue, h.target, e.status, h.fence, h.attempts, h.crash_count, h.due, e.result,
    CASE WHEN e.status = 'FAILED' THEN 'children_failed' END, {now}
FROM {ended_batches} e CROSS JOIN windlass_hot h WHERE {h.id = e.id}

-- When a child is started over, its batch becomes a live job again, unless the batch was canceled.
-- name: lock_failed_batches :rows
SELECT d.id FROM windlass_done d WHERE d.id {in_ids} AND d.status = 'FAILED' ORDER BY d.id {lock_d}

-- name: reopen_batches :count
INSERT INTO windlass_hot (id, queue, target, lane, status, priority, due, fence, attempts, crash_count)
SELECT d.id, d.queue, d.target, j.lane, 'PENDING', j.priority, NULL, d.fence + 1, 0, 0
FROM windlass_done d JOIN windlass_job j ON {j.id = d.id} WHERE d.id {in_ids}

-- name: batch_keys :rows
SELECT business_key, id FROM windlass_job WHERE id {in_ids} AND business_key IS NOT NULL

-- For a batch that is restored from the archive.
-- name: restore_batch :count
INSERT INTO windlass_group (id, flow_id, total, succeeded, failed, touched_at, kind)
VALUES (:id, :id, :total, :succeeded, :failed, {now}, 2) ON CONFLICT (id) DO NOTHING

-- The next children of a batch in the order of their ids, and the state of each.
-- name: children :rows
SELECT c.id, h.status, d.status FROM (
    SELECT id FROM windlass_job WHERE batch_id = :batch AND batch_id IS NOT NULL AND id > :after ORDER BY id LIMIT {window}
) c LEFT JOIN windlass_hot h ON {h.id = c.id} LEFT JOIN windlass_done d ON {d.id = c.id}
ORDER BY c.id

-- name: operation_kinds :rows
SELECT id, kind FROM windlass_operation WHERE id {in_ids}

-- Batches whose counts must be checked: unchanged for a long time although not all of their children have ended.
-- name: idle_batches :rows
SELECT g.id FROM windlass_group g
WHERE g.id > :after AND g.id <= :until AND g.kind = 2 AND g.loaded = 1 AND g.succeeded + g.failed < g.total
    AND g.touched_at < {now} - :idle_us AND NOT EXISTS (SELECT 1 FROM windlass_group_delta t WHERE t.group_id = g.id)
ORDER BY g.id LIMIT {most}

-- Returns no row for a batch that was reopened: children that were archived or purged are counted, but have no rows here.
-- name: recount_children :row
SELECT g.total, g.succeeded, g.failed,
    (SELECT count(*) FROM windlass_job j JOIN windlass_done d ON {d.id = j.id}
        WHERE j.batch_id = g.id AND j.batch_id IS NOT NULL AND d.status = 'SUCCEEDED'),
    (SELECT count(*) FROM windlass_job j JOIN windlass_done d ON {d.id = j.id}
        WHERE j.batch_id = g.id AND j.batch_id IS NOT NULL AND d.status <> 'SUCCEEDED')
FROM windlass_group g WHERE g.id = :id
    AND g.total = (SELECT count(*) FROM windlass_job j WHERE j.batch_id = g.id AND j.batch_id IS NOT NULL)
