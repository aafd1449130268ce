-- The statements of a job's life. Ids are in the dialect's own form, times in microseconds, JSON is text.
-- Many rows are passed as one JSON text, which each dialect reads as a table.

-- name: new_jobs :table
{new_job_types}

-- name: keys :table
key text, id id

-- In the order of `row_of` in transition_rows.py.
-- name: transitions :table
id id, fence integer, status text, outcome text, number integer, attempts integer, started_at integer, ended_at integer,
wait_us integer, result text, error text, error_class text, traceback text, reason text

-- In the order of `success_row_of` in transition_rows.py.
-- name: successes :table
id id, fence integer, number integer, started_at integer, ended_at integer, wait_us integer, result text

-- name: insert_jobs :count
INSERT INTO windlass_job ({new_job_columns}, created_at) SELECT {new_job_columns}, {now} FROM {new_jobs} n

-- name: insert_hot :count
INSERT INTO windlass_hot ({new_hot}) {new_hot_values} FROM {new_jobs} n

-- name: new_hot :fragment
id, queue, target, lane, status, priority, due, fence, attempts, crash_count, expires

-- name: new_hot_values :fragment
SELECT id, queue, target, lane, 'PENDING', priority, coalesce(due_at, {now} + delay_us), 0, 0, 0,
    coalesce(expires_at, {now} + expires_us)

-- name: insert_tags :count
INSERT INTO windlass_job_tag (tag, job_id) SELECT key, id FROM {keys} k

-- name: find_keys :rows
SELECT idempotency_key, job_id FROM windlass_key WHERE idempotency_key {in_names}

-- name: insert_keys :count
INSERT INTO windlass_key (idempotency_key, job_id) SELECT key, id FROM {keys} k WHERE true
ON CONFLICT (idempotency_key) DO NOTHING

-- name: find_holders :rows
SELECT k.business_key, k.holder_id, coalesce(h.status, 'RUNNING'), k.holder_kind
FROM windlass_live_key k LEFT JOIN windlass_hot h ON {h.id = k.holder_id}
WHERE k.business_key {in_names}

-- name: insert_live_keys :count
INSERT INTO windlass_live_key (business_key, holder_id) SELECT key, id FROM {keys} k WHERE true
ON CONFLICT (business_key) DO NOTHING

-- name: delete_live_key :count
DELETE FROM windlass_live_key WHERE holder_id = :holder_id

-- name: delete_live_keys :count
DELETE FROM windlass_live_key WHERE holder_id {in_ids}

-- name: supersede_done :count
INSERT INTO windlass_done (id, queue, target, status, fence, attempts, crash_count, due, reason, superseded_by, finished_at)
SELECT id, queue, target, 'CANCELED', fence, attempts, crash_count, due, 'superseded', :superseded_by, {now}
FROM windlass_hot WHERE id = :id AND status IN ('PENDING', 'PAUSED', 'WAITING')
ON CONFLICT (id) DO NOTHING

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

-- name: claim_chosen :count
UPDATE windlass_hot SET status = 'RUNNING', node = :node, picked_at = {now}, fence = {next_fence}, holds = :holds
WHERE id {in_ids}

-- The ids of jobs just claimed or ended are joined as a table, in that order: with {in_ids} SQLite would sort them first.
-- Small payloads are returned with their claims.
-- name: claimed_rows :rows
SELECT h.id, {h.claim_columns}, {j.payload_columns}
FROM {ids} i CROSS JOIN windlass_hot h LEFT JOIN windlass_job j ON j.id = i.id
    AND length(j.args) + coalesce(length(j.params), 0) + coalesce(length(j.options), 0) <= :small
WHERE h.id = i.id

-- name: claims_of_node :rows
SELECT id, {claim_columns} FROM windlass_hot WHERE node = :node AND status = 'RUNNING'

-- For a job whose id is known: this form prevents the planner from using the index of all running jobs.
-- name: h_runs :fragment
coalesce(h.status, '') = 'RUNNING'

-- name: running_fences :rows
SELECT h.id, h.fence FROM windlass_hot h WHERE h.id {in_ids} AND {h_runs}

-- name: load_payloads :rows
SELECT id, {payload_columns} FROM windlass_job WHERE id {in_ids}

-- Four statements read the transitions of a flush: parsed once into a table of the session, they cost less than half.
-- name: stage_transitions :count
INSERT INTO {staged} (id, fence, status, outcome, number, attempts, started_at, ended_at, wait_us, result, error, error_class, traceback,
    reason)
SELECT id, fence, status, outcome, number, attempts, started_at, ended_at, wait_us, result, error, error_class, traceback, reason
FROM {transitions} t

-- name: stage_successes :count
INSERT INTO {staged} (id, fence, status, outcome, number, attempts, started_at, ended_at, wait_us, result)
SELECT id, fence, 'SUCCEEDED', 'succeeded', number, number, started_at, ended_at, wait_us, result FROM {successes} t

-- name: clear_staged :count
DELETE FROM {staged}

-- name: held :rows
SELECT h.id, h.fence FROM {staged} t CROSS JOIN windlass_hot h WHERE h.id = t.id AND h.fence = t.fence

-- name: finish_done :count
INSERT INTO windlass_done (id, queue, target, status, fence, attempts, crash_count, node, due, result, error, error_class,
    reason, picked_at, started_at, finished_at)
SELECT h.id, h.queue, h.target, t.status, h.fence, t.attempts, h.crash_count, h.node, h.due, t.result, t.error, t.error_class,
    t.reason, h.picked_at, t.started_at, t.ended_at
FROM {staged} t CROSS JOIN windlass_hot h WHERE h.id = t.id AND h.fence = t.fence

-- name: insert_attempts :count
INSERT INTO windlass_attempt (job_id, fence, number, node, picked_at, started_at, ended_at, wait_us, outcome, error_class,
    error, traceback)
SELECT h.id, h.fence, t.number, h.node, h.picked_at, t.started_at, t.ended_at, t.wait_us, t.outcome, t.error_class, t.error,
    t.traceback
FROM {staged} t CROSS JOIN windlass_hot h WHERE h.id = t.id AND h.fence = t.fence

-- name: finish_hot :count
DELETE FROM windlass_hot WHERE id {in_ids}

-- name: requeue_hot :count
UPDATE windlass_hot SET status = 'PENDING', due = CASE WHEN :delay_us >= 0 THEN {now} + :delay_us END, fence = {next_fence},
    attempts = :attempts, node = NULL, picked_at = NULL, holds = NULL, lane = nullif(coalesce(:lane, lane), ''), expires = CASE WHEN CAST(:started_at AS {integer}) IS NULL THEN expires END
WHERE id = :id AND fence = :fence

-- name: release_hot :count
UPDATE windlass_hot SET status = 'PENDING', fence = {next_fence}, node = NULL, picked_at = NULL, holds = NULL,
    lane = coalesce(:lane, lane), expires = CASE WHEN CAST(:started_at AS {integer}) IS NULL THEN expires END
WHERE id = :id AND fence = :fence

-- name: due_times :rows
SELECT h.id, h.due FROM windlass_hot h WHERE h.id {in_ids}

-- name: charge_crash :count
UPDATE windlass_hot SET crash_count = CASE WHEN crash_count < 1000000 THEN crash_count + 1 ELSE crash_count END WHERE id {in_ids}

-- name: charge_last_crash :count
UPDATE windlass_done SET crash_count = CASE WHEN crash_count < 1000000 THEN crash_count + 1 ELSE crash_count END WHERE id {in_ids}

-- Only the owner of an attempt knows when it started: a `lost` without a start was written by the node that recovered the job.
-- The last condition never holds. Without it SQLite takes the others for a filter on attempts, and reads the whole table to make it.
-- name: applied :rows
SELECT a.job_id, a.fence FROM {staged} t CROSS JOIN windlass_attempt a
WHERE a.job_id = t.id AND a.fence = t.fence
    AND (a.outcome NOT IN ('lost', 'canceled') OR a.started_at IS NOT NULL OR a.fence <> t.fence)

-- name: insert_lanes :count
INSERT INTO windlass_lane (queue, lane, created_at, unknown_since)
SELECT DISTINCT queue, lane, {now}, {now} FROM windlass_hot WHERE id {in_ids} AND lane IS NOT NULL
ORDER BY queue, lane
ON CONFLICT (queue, lane) DO UPDATE SET created_at = excluded.created_at
