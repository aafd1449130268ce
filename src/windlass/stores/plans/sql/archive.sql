-- Ended jobs leave the working tables for one row of their own. Tags, idempotency keys and dead letters stay where they are: they lead
-- to archived jobs too.

-- Along the primary key: ids tell the time, so the oldest jobs come first, and no success pays for an index on finished_at. The upper
-- end is the plan's business: with both ends in it PostgreSQL expects few rows of a table it has no statistics of, and sorts them all.
-- name: oldest_ended :rows
SELECT id, CASE WHEN finished_at <= {now} - :age_us AND status <> 'PAUSED' THEN 1 ELSE 0 END
FROM windlass_done WHERE id > :after ORDER BY id LIMIT {window}

-- name: store_time :row
SELECT {now}

-- name: lock_archivable :rows
SELECT d.id FROM {ids} i CROSS JOIN windlass_done d
WHERE d.id = i.id AND d.status <> 'PAUSED' AND d.finished_at <= {now} - :age_us ORDER BY d.id

-- name: histories :rows
SELECT a.job_id, a.fence, a.number, a.node, a.picked_at, a.started_at, a.ended_at, a.wait_us, a.outcome, a.error_class, a.error,
    a.traceback
FROM {ids} i CROSS JOIN windlass_attempt a WHERE a.job_id = i.id ORDER BY a.job_id, a.fence

-- name: archive_jobs :count
INSERT INTO windlass_archive (id, queue, target, status, business_key, created_at, finished_at, job)
SELECT id, queue, target, status, business_key, created_at, finished_at, job FROM {archived_rows} r WHERE true
ON CONFLICT (id) DO NOTHING

-- name: forget_jobs :count
DELETE FROM windlass_job WHERE id IN (SELECT id FROM {ids} i)

-- name: forget_attempts :count
DELETE FROM windlass_attempt WHERE job_id IN (SELECT id FROM {ids} i)

-- The way back, for a dead letter that somebody wants to steer after all: one by one, since people name them one by one.

-- name: lock_archived :rows
SELECT a.id, a.job FROM {ids} i CROSS JOIN windlass_archive a WHERE a.id = i.id AND a.status = 'FAILED' ORDER BY a.id

-- name: restore_job :count
INSERT INTO windlass_job (id, queue, target, priority, args, options, tags, params, correlation_id, idempotency_key, business_key,
    parent_id, lane, created_at)
VALUES (:id, :queue, :target, :priority, :args, :options, :tags, :params, :correlation_id, :idempotency_key, :business_key,
    :parent_id, :lane, :created_at)

-- name: restore_done :count
INSERT INTO windlass_done (id, queue, target, status, fence, attempts, crash_count, node, due, result, error, error_class, reason,
    superseded_by, picked_at, started_at, finished_at)
VALUES (:id, :queue, :target, :status, :fence, :attempts, :crash_count, :node, :due, :result, :error, :error_class, :reason,
    :superseded_by, :picked_at, :started_at, :finished_at)

-- name: restore_attempt :count
INSERT INTO windlass_attempt (job_id, fence, number, node, picked_at, started_at, ended_at, wait_us, outcome, error_class, error,
    traceback)
VALUES (:job_id, :fence, :number, :node, :picked_at, :started_at, :ended_at, :wait_us, :outcome, :error_class, :error, :traceback)

-- name: leave_archive :count
DELETE FROM windlass_archive WHERE id IN (SELECT id FROM {ids} i)
