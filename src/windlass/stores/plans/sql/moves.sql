-- Moves of jobs by users: cancel, pause, resume, retry. Each move raises the fence, from which the version of a job is derived. Only moves
-- that end a job keep the fence, because it identifies the last attempt. Rows are locked in the order of ids before any decision; SQLite
-- needs no locks, because it has one writer.

-- Whether a job belongs to a flow, so that other jobs may depend on it. Ordered by the primary key: for an equality alone PostgreSQL may
-- choose another index that has the id after other columns, and read all of it.
-- name: j_in_flow :fragment
CASE WHEN j.batch_id IS NOT NULL OR (
    SELECT f.job_id FROM windlass_flow f WHERE f.job_id >= j.id ORDER BY f.job_id LIMIT 1) = j.id THEN 1 ELSE 0 END

-- name: lock_live :rows
SELECT h.id, h.status, h.queue, h.priority, h.target, j.correlation_id, {j_in_flow}
FROM windlass_hot h JOIN windlass_job j ON {j.id = h.id}
WHERE h.id {in_ids} ORDER BY h.id

-- name: lock_ended :rows
SELECT d.id, d.status, d.queue, j.priority, d.target, j.correlation_id, {j_in_flow}, j.business_key, {d_unsignaled}
FROM windlass_done d JOIN windlass_job j ON {j.id = d.id}
WHERE d.id {in_ids} AND d.status IN ('FAILED', 'PAUSED') ORDER BY d.id

-- name: lock_expired :rows
SELECT h.id, h.status, h.queue, h.priority, h.target, j.correlation_id, {j_in_flow}
FROM windlass_hot h JOIN windlass_job j ON {j.id = h.id}
WHERE h.expires IS NOT NULL AND h.status <> 'RUNNING' AND h.status IN ('PENDING', 'PAUSED', 'WAITING') AND h.expires <= {now}
ORDER BY h.expires, h.id LIMIT :most

-- name: superseded_jobs :rows
SELECT d.id, d.queue, j.priority, d.target, j.correlation_id, {j_in_flow}, {d_unsignaled}
FROM windlass_done d JOIN windlass_job j ON {j.id = d.id} WHERE d.id {in_ids} AND d.status = 'CANCELED'

-- name: cancel_attempts :count
INSERT INTO windlass_attempt (job_id, fence, number, node, picked_at, ended_at, outcome)
SELECT h.id, h.fence, {next_attempt}, h.node, h.picked_at, {now}, 'canceled'
FROM windlass_hot h WHERE h.id {in_ids} AND {h_runs}

-- name: cancel_live :count
INSERT INTO windlass_done (id, queue, target, status, fence, attempts, crash_count, node, due, reason, picked_at, finished_at)
SELECT h.id, h.queue, h.target, 'CANCELED', h.fence, h.attempts, h.crash_count, h.node, h.due, :reason, h.picked_at, {now}
FROM windlass_hot h WHERE h.id {in_ids}

-- name: cancel_ended :count
UPDATE windlass_done SET status = 'CANCELED', reason = :reason, paused_from = NULL, finished_at = {now}, fence = fence + 1
WHERE id {in_ids}

-- name: pause_live :count
UPDATE windlass_hot SET status = 'PAUSED', paused_from = 'PENDING', fence = {next_fence} WHERE id {in_ids}

-- name: pause_ended :count
UPDATE windlass_done SET status = 'PAUSED', paused_from = 'FAILED', fence = fence + 1 WHERE id {in_ids}

-- Progress is stored under the fence of the last attempt, so it gets the new fence too.
-- name: carry_progress :count
UPDATE windlass_progress SET fence = fence + 1
WHERE job_id {in_ids} AND fence = (SELECT d.fence FROM windlass_done d WHERE d.id = windlass_progress.job_id)

-- name: resume_live :count
UPDATE windlass_hot SET status = 'PENDING', paused_from = NULL, fence = {next_fence} WHERE id {in_ids}

-- name: resume_ended :count
UPDATE windlass_done SET status = 'FAILED', paused_from = NULL, fence = fence + 1 WHERE id {in_ids}

-- name: revive :count
INSERT INTO windlass_hot (id, queue, target, lane, status, priority, due, fence, attempts, crash_count)
SELECT d.id, d.queue, d.target, j.lane, 'PENDING', j.priority, {now}, CASE WHEN d.fence < 4611686018427387904 THEN d.fence + 1 ELSE 4611686018427387904 END, 0, 0
FROM windlass_done d JOIN windlass_job j ON {j.id = d.id} WHERE d.id {in_ids}

-- name: forget_ended :count
DELETE FROM windlass_done WHERE id {in_ids}

-- name: tagged :rows
SELECT t.job_id FROM windlass_job_tag t LEFT JOIN windlass_hot h ON {h.id = t.job_id}
LEFT JOIN windlass_done d ON {d.id = t.job_id} AND d.status = 'PAUSED'
WHERE t.tag = :tag AND t.job_id > :after AND (h.fence IS NOT NULL OR d.fence IS NOT NULL) ORDER BY t.job_id LIMIT 500

-- name: pause_queue :count
INSERT INTO windlass_queue (name, paused) VALUES (:name, 1)
ON CONFLICT (name) DO UPDATE SET paused = 1 WHERE windlass_queue.paused = 0

-- name: resume_queue :count
UPDATE windlass_queue SET paused = 0 WHERE name = :name AND paused <> 0
