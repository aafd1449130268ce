-- Reads that a handle, `app.get` and `app.history` make.

-- name: get_job :row
SELECT j.id, j.target, j.queue, coalesce(h.status, d.status), j.priority, j.args, j.options, j.tags, j.params, j.correlation_id,
    j.idempotency_key, j.business_key, j.parent_id, j.batch_id, j.created_at,
    coalesce(h.fence, d.fence), coalesce(h.attempts, d.attempts), coalesce(h.crash_count, d.crash_count),
    coalesce(h.node, d.node), coalesce(h.due, d.due), coalesce(h.picked_at, d.picked_at), coalesce(h.paused_from, d.paused_from),
    d.result, d.error, d.error_class, d.reason, d.superseded_by, d.started_at, d.finished_at
FROM windlass_job j
LEFT JOIN windlass_hot h ON h.id = j.id
LEFT JOIN windlass_done d ON d.id = j.id
WHERE j.id = :id

-- name: last_attempt :row
SELECT error, error_class, wait_us, started_at, ended_at FROM windlass_attempt
WHERE job_id = :id AND outcome IN ('succeeded', 'retried', 'failed') ORDER BY fence DESC LIMIT 1

-- name: history :rows
SELECT number, node, picked_at, started_at, ended_at, wait_us, outcome, error_class, error, traceback
FROM windlass_attempt WHERE job_id = :id ORDER BY fence

-- name: job_exists :row
SELECT id FROM windlass_job WHERE id = :id

-- name: outcomes :rows
SELECT j.id, coalesce(h.status, d.status), j.target, d.result, d.error, d.error_class, d.reason
FROM {ids} i CROSS JOIN windlass_job j
LEFT JOIN windlass_hot h ON h.id = j.id
LEFT JOIN windlass_done d ON d.id = j.id
WHERE j.id = i.id

-- name: failed_job :row
SELECT d.target, d.queue, j.correlation_id, d.attempts, d.error, d.error_class, d.reason, d.finished_at
FROM windlass_done d JOIN windlass_job j ON j.id = d.id
WHERE d.id = :id AND d.status = 'FAILED'
