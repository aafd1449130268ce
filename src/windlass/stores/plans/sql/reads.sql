-- Reads that a handle, `app.get`, `app.find` and `app.history` make.

-- name: job_rows :fragment
SELECT j.id, j.target, j.queue, coalesce(h.status, d.status), j.priority, j.args, j.options, j.tags, j.params, j.correlation_id,
    j.idempotency_key, j.business_key, j.parent_id, j.created_at,
    coalesce(h.fence, d.fence), coalesce(h.attempts, d.attempts), coalesce(h.crash_count, d.crash_count),
    coalesce(h.node, d.node), coalesce(h.due, d.due), coalesce(h.picked_at, d.picked_at), coalesce(h.paused_from, d.paused_from),
    d.result, d.error, d.error_class, d.reason, d.superseded_by, d.started_at, d.finished_at,
    p.done, p.total, p.message, p.at, j.lane
FROM windlass_job j
LEFT JOIN windlass_hot h ON h.id = j.id
LEFT JOIN windlass_done d ON d.id = j.id
LEFT JOIN windlass_progress p ON p.job_id = j.id AND p.fence = coalesce(h.fence, d.fence)

-- name: get_jobs :rows
{job_rows}
WHERE j.id IN (SELECT id FROM {ids} i)

-- name: counted_attempts :rows
SELECT a.job_id, a.error, a.error_class, a.wait_us, a.started_at, a.ended_at FROM {ids} i CROSS JOIN windlass_attempt a
WHERE a.job_id = i.id AND a.outcome IN ('succeeded', 'retried', 'failed') ORDER BY a.job_id, a.fence

-- name: archived_jobs :rows
SELECT id, job FROM windlass_archive WHERE id IN (SELECT id FROM {ids} i)

-- name: history :rows
SELECT number, node, picked_at, started_at, ended_at, wait_us, outcome, error_class, error, traceback
FROM windlass_attempt WHERE job_id = :id ORDER BY fence

-- name: job_exists :row
SELECT id FROM windlass_job WHERE id = :id

-- Where a job waits now, which may be another lane than it was given: nodes pass on what they do not know. And how long at most.
-- name: lane_of :row
SELECT coalesce(h.lane, j.lane), h.expires FROM windlass_job j LEFT JOIN windlass_hot h ON h.id = j.id WHERE j.id = :id

-- name: outcomes :rows
SELECT j.id, coalesce(h.status, d.status), j.target, d.result, d.error, d.error_class, d.reason
FROM {ids} i CROSS JOIN windlass_job j
LEFT JOIN windlass_hot h ON h.id = j.id
LEFT JOIN windlass_done d ON d.id = j.id
WHERE j.id = i.id

-- name: given_up_jobs :rows
SELECT j.options, d.id, d.target, d.queue, d.status, d.attempts, j.args, j.tags, j.params, j.correlation_id, NULL, d.error,
    d.error_class, d.reason
FROM {ids} i CROSS JOIN windlass_done d JOIN windlass_job j ON j.id = d.id
WHERE d.id = i.id AND d.status = 'FAILED' AND j.options IS NOT NULL

-- name: failed_jobs :rows
SELECT d.id, d.target, d.queue, j.correlation_id, d.attempts, d.error, d.error_class, d.reason, d.finished_at, d.node, l.raised
FROM {ids} i CROSS JOIN windlass_done d JOIN windlass_job j ON j.id = d.id LEFT JOIN windlass_dead_letter l ON l.job_id = d.id
WHERE d.id = i.id AND d.status = 'FAILED'
