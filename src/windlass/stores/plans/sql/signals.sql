-- Signals: a job that awaits one is WAITING, due at its deadline. The plan that releases it compares and sets its status under the lock of
-- its row in windlass_hot, which is always locked before its row in windlass_signal_wait.

-- name: signal_waits :table
job_id id, key text, timeout_us integer, open integer, signal text, by_whom text, at integer

-- name: insert_waits :count
INSERT INTO windlass_signal_wait ({signal_wait_columns}) SELECT {signal_wait_columns} FROM {signal_waits} w

-- name: deadline :fragment
coalesce((SELECT {now} + w.timeout_us FROM windlass_signal_wait w WHERE w.job_id = windlass_hot.id), 4611686018427387904)

-- For new jobs, and jobs that start over. A follower that is not released yet has no deadline.
-- name: park_jobs :count
UPDATE windlass_hot SET status = 'WAITING', due = CASE WHEN due IS NULL THEN NULL ELSE {deadline} END WHERE id {in_ids}

-- For a retry after a timeout: the due time of the job is already the new deadline.
-- name: park_again :count
UPDATE windlass_hot SET status = 'WAITING' WHERE id {in_ids}

-- name: waiters_of_key :rows
SELECT h.id, h.queue, h.priority, h.target, j.correlation_id, w.key, CASE WHEN h.due IS NULL THEN 0 ELSE 1 END
FROM windlass_signal_wait w CROSS JOIN windlass_hot h CROSS JOIN windlass_job j
WHERE w.key = :key AND w.open = 1 AND {h.id = w.job_id} AND h.status = 'WAITING' AND {j.id = h.id}
ORDER BY w.job_id LIMIT {most} {lock_h}

-- name: waiter :rows
SELECT h.id, h.queue, h.priority, h.target, j.correlation_id, w.key, CASE WHEN h.due IS NULL THEN 0 ELSE 1 END
FROM windlass_hot h CROSS JOIN windlass_signal_wait w CROSS JOIN windlass_job j
WHERE h.id = :id AND h.status = 'WAITING' AND {w.job_id = h.id} AND coalesce(w.open, 0) = 1 AND {j.id = h.id} {lock_h}

-- name: deliver_signal :count
UPDATE windlass_signal_wait SET open = 0, signal = :signal, by_whom = :by_whom, at = {now} WHERE job_id {in_ids} AND open = 1

-- name: release_waiters :count
UPDATE windlass_hot SET status = 'PENDING', due = CASE WHEN due IS NULL THEN NULL ELSE {now} END, fence = {next_fence}
WHERE id {in_ids} AND status = 'WAITING'

-- name: first_deadline :row
SELECT due, {now} FROM windlass_hot WHERE status = 'WAITING' AND due IS NOT NULL ORDER BY due, id LIMIT 1

-- name: expire_waits :rows
UPDATE windlass_hot SET status = 'PENDING', fence = {next_fence} WHERE id IN (
    SELECT id FROM windlass_hot WHERE status = 'WAITING' AND due IS NOT NULL AND due <= {now} ORDER BY due, id LIMIT {most}
) RETURNING queue, priority

-- name: close_waits :count
UPDATE windlass_signal_wait SET open = 0 WHERE job_id {in_ids} AND open = 1

-- name: reopen_waits :count
UPDATE windlass_signal_wait SET open = 1 WHERE job_id {in_ids} AND signal IS NULL

-- The wait of an ended job, unless its signal has come.
-- name: d_unsignaled :fragment
CASE WHEN (SELECT 1 FROM windlass_signal_wait w WHERE w.job_id = d.id AND w.signal IS NULL) = 1 THEN 1 ELSE 0 END

-- name: waits_of_jobs :rows
SELECT {signal_wait_columns} FROM windlass_signal_wait WHERE job_id {in_ids}

-- name: forget_waits :count
DELETE FROM windlass_signal_wait WHERE job_id {in_ids}
