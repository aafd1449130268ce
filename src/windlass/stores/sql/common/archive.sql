-- Ended jobs leave the working tables for one row of their own.

-- name: archive_job :count
INSERT INTO windlass_archive (id, queue, target, status, job, finished_at, created_at)
SELECT :id, :queue, :target, :status, :job, finished_at, :created_at FROM windlass_done WHERE id = :id
ON CONFLICT (id) DO NOTHING

-- name: forget_jobs :count
DELETE FROM windlass_job WHERE id IN (SELECT id FROM {ids})

-- name: forget_attempts :count
DELETE FROM windlass_attempt WHERE job_id IN (SELECT id FROM {ids})
