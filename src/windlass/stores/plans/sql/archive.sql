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
SELECT d.id FROM windlass_done d
WHERE d.id {in_ids} AND d.status <> 'PAUSED' AND d.finished_at <= {now} - :age_us ORDER BY d.id

-- name: histories :rows
SELECT {attempt_columns} FROM windlass_attempt WHERE job_id {in_ids} ORDER BY job_id, fence

-- name: archived_rows :table
id id, queue text, target text, status text, business_key text, created_at integer, finished_at integer, job text

-- name: archive_jobs :count
INSERT INTO windlass_archive ({archive_columns}, job) SELECT {archive_columns}, job FROM {archived_rows} r WHERE true
ON CONFLICT (id) DO NOTHING

-- name: forget_jobs :count
DELETE FROM windlass_job WHERE id {in_ids}

-- name: forget_attempts :count
DELETE FROM windlass_attempt WHERE job_id {in_ids}

-- The way back, for a dead letter that somebody wants to steer after all: one by one, since people name them one by one.

-- name: lock_archived :rows
SELECT {archive_columns}, job FROM windlass_archive WHERE id {in_ids} AND status = 'FAILED' ORDER BY id

-- name: restore_job :count
INSERT INTO windlass_job ({job_columns}) VALUES ({:job_columns})

-- name: restore_done :count
INSERT INTO windlass_done (id, queue, target, {state_columns}, {end_columns})
VALUES (:id, :queue, :target, {:state_columns}, {:end_columns})

-- name: restore_attempt :count
INSERT INTO windlass_attempt ({attempt_columns}) VALUES ({:attempt_columns})

-- name: forget_archived :count
DELETE FROM windlass_archive WHERE id {in_ids}
