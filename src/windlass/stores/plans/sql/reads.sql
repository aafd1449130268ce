-- Reads of handles, `app.get`, `app.find` and `app.history`.

-- In the order of `STORED_JOB` in columns.py.
-- name: get_jobs :rows
SELECT {j.job_columns}, {h|d.state_columns}, {d.end_columns}, p.done, p.total, p.message, p.at
FROM windlass_job j
LEFT JOIN windlass_hot h ON {h.id = j.id}
LEFT JOIN windlass_done d ON {d.id = j.id}
LEFT JOIN windlass_progress p ON {p.job_id = j.id} AND p.fence = coalesce(h.fence, d.fence)
WHERE j.id {in_ids}

-- name: counted_attempts :rows
SELECT job_id, {last_attempt_columns} FROM windlass_attempt
WHERE job_id {in_ids} AND outcome IN ('succeeded', 'retried', 'failed') ORDER BY job_id, fence

-- name: archived_jobs :rows
SELECT {archive_columns}, job FROM windlass_archive WHERE id {in_ids}

-- name: history :rows
SELECT {attempt_columns} FROM windlass_attempt WHERE job_id = :id ORDER BY fence

-- name: job_exists :row
SELECT id FROM windlass_job WHERE id = :id

-- The current lane of a waiting job, and when the job expires. The lane may have changed: nodes move jobs whose targets they do not know.
-- name: lane_of :row
SELECT coalesce(h.lane, j.lane), h.expires FROM windlass_job j LEFT JOIN windlass_hot h ON {h.id = j.id} WHERE j.id = :id

-- name: outcomes :rows
SELECT j.id, coalesce(h.status, d.status), j.target, d.result, d.error, d.error_class, d.reason
FROM windlass_job j
LEFT JOIN windlass_hot h ON {h.id = j.id}
LEFT JOIN windlass_done d ON {d.id = j.id}
WHERE j.id {in_ids}

-- name: failed_jobs :rows
SELECT d.id, d.target, d.queue, j.priority, j.correlation_id, d.attempts, d.error, d.error_class, d.reason, d.finished_at, d.node, {j_in_flow}
FROM windlass_done d JOIN windlass_job j ON {j.id = d.id}
WHERE d.id {in_ids} AND d.status = 'FAILED'
