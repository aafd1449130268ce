-- A job's life in statements. Ids travel as the dialect's own form, times as microseconds, JSON as text.

-- name: insert_job :count
INSERT INTO windlass_job (id, queue, target, priority, args, options, tags, params, correlation_id, idempotency_key,
    business_key, created_at)
VALUES (:id, :queue, :target, :priority, :args, :options, :tags, :params, :correlation_id, :idempotency_key,
    :business_key, {now})

-- name: insert_hot :count
INSERT INTO windlass_hot (id, queue, target, status, priority, due, fence, attempts, crash_count)
VALUES (:id, :queue, :target, 'PENDING', :priority, coalesce(:due_at, {now} + :delay_us), 0, 0, 0)

-- name: insert_tag :count
INSERT INTO windlass_job_tag (tag, job_id) VALUES (:tag, :job_id)

-- name: find_key :row
SELECT idempotency_key, job_id FROM windlass_key WHERE idempotency_key = :idempotency_key

-- name: insert_key :count
INSERT INTO windlass_key (idempotency_key, job_id) VALUES (:idempotency_key, :job_id)
ON CONFLICT (idempotency_key) DO NOTHING

-- name: find_holder :row
SELECT k.business_key, k.holder_id, coalesce(h.status, 'RUNNING')
FROM windlass_live_key k LEFT JOIN windlass_hot h ON h.id = k.holder_id
WHERE k.business_key = :business_key

-- name: insert_live_key :count
INSERT INTO windlass_live_key (business_key, holder_kind, holder_id) VALUES (:business_key, 'job', :holder_id)
ON CONFLICT (business_key) DO NOTHING

-- name: delete_live_key :count
DELETE FROM windlass_live_key WHERE holder_id = :holder_id

-- name: supersede_done :count
INSERT INTO windlass_done (id, queue, target, status, fence, attempts, crash_count, due, reason, superseded_by, finished_at)
SELECT id, queue, target, 'CANCELED', fence, attempts, crash_count, due, 'superseded', :superseded_by, {now}
FROM windlass_hot WHERE id = :id AND status IN ('PENDING', 'PAUSED', 'WAITING')

-- name: supersede_hot :count
DELETE FROM windlass_hot WHERE id = :id AND status IN ('PENDING', 'PAUSED', 'WAITING')

-- name: claim_heads :rows
SELECT id, due, priority FROM windlass_hot
WHERE queue = :queue AND priority = :level AND status = 'PENDING' AND lane IS NULL AND due <= {now}
ORDER BY due, id LIMIT {chunk}

-- name: claim_lane_heads :rows
SELECT id, due, priority FROM windlass_hot
WHERE queue = :queue AND lane = :lane AND priority = :level AND status = 'PENDING' AND lane IS NOT NULL AND due <= {now}
ORDER BY due, id LIMIT {chunk}

-- name: claim_one :count
UPDATE windlass_hot SET status = 'RUNNING', node = :node, picked_at = {now}, fence = fence + 1
WHERE id = :id AND status = 'PENDING'

-- name: claimed_row :row
SELECT id, fence, queue, target, attempts, crash_count, priority, due, picked_at FROM windlass_hot WHERE id = :id

-- name: load_payload :row
SELECT id, args, options, params, tags, correlation_id, business_key, created_at FROM windlass_job WHERE id = :id

-- name: load_small_payload :row
SELECT id, args, options, params, tags, correlation_id, business_key, created_at FROM windlass_job
WHERE id = :id AND length(args) <= :small

-- name: finish_done :count
INSERT INTO windlass_done (id, queue, target, status, fence, attempts, crash_count, node, due, result, error, error_class,
    reason, picked_at, started_at, finished_at)
SELECT id, queue, target, :status, fence, :attempts, crash_count, node, due, :result, :error, :error_class,
    :reason, picked_at, :started_at, :ended_at
FROM windlass_hot WHERE id = :job_id AND fence = :fence

-- name: finish_attempt :count
INSERT INTO windlass_attempt (job_id, fence, number, node, picked_at, started_at, ended_at, wait_us, outcome, error_class,
    error, traceback)
SELECT id, fence, :number, node, picked_at, :started_at, :ended_at, :wait_us, :outcome, :error_class, :error, :traceback
FROM windlass_hot WHERE id = :job_id AND fence = :fence

-- name: finish_hot :count
DELETE FROM windlass_hot WHERE id = :job_id AND fence = :fence

-- name: requeue_hot :count
UPDATE windlass_hot SET status = 'PENDING', due = {now} + :delay_us, fence = fence + 1, attempts = :attempts, node = NULL,
    picked_at = NULL
WHERE id = :job_id AND fence = :fence

-- name: hand_back_hot :count
UPDATE windlass_hot SET status = 'PENDING', fence = fence + 1, node = NULL, picked_at = NULL, lane = coalesce(:lane, lane)
WHERE id = :job_id AND fence = :fence

-- name: applied_attempt :row
SELECT job_id, fence FROM windlass_attempt WHERE job_id = :job_id AND fence = :fence

-- name: insert_lane :count
INSERT INTO windlass_lane (queue, lane, kind, created_at) VALUES (:queue, :lane, :kind, {now})
ON CONFLICT (queue, lane) DO NOTHING
