-- Waits of steps for external answers. The plan that parks an execution and the plan that stores an answer both lock the row of the waiting
-- job (the main job, or the job of the item's part) in windlass_hot first, in a separate statement: so each sees the other's commit.

-- name: new_waits :bulk
execution_id id, step integer, path text, round integer, tenant text, pipeline text, correlation_id text, request text, deadline integer,
stage integer

-- name: same_wait :fragment
{windlass_external_wait.execution_id = k.execution_id} AND windlass_external_wait.step = k.step AND windlass_external_wait.path = k.path
    AND windlass_external_wait.round = k.round

-- name: open_external_waits :count
INSERT INTO windlass_external_wait (execution_id, step, path, round, tenant, pipeline, correlation_id, status, closed, request, deadline,
    created_at)
SELECT execution_id, step, path, round, tenant, pipeline, correlation_id, 'WAITING', 0, request, deadline, {now} FROM {new_waits} k
WHERE true ON CONFLICT (execution_id, step, path, round) DO NOTHING

-- For waits that were answered before they were stored: adds the request.
-- name: note_requests :count
UPDATE windlass_external_wait SET request = k.request FROM {new_waits} k WHERE {same_wait} AND windlass_external_wait.request IS NULL

-- name: answered_items :bulk
execution_id id, stage integer, path text, step integer, type integer, value text

-- Items whose wait is completed continue after their step, with the answer as their value. The values are parameters: in a join with the
-- waits, PostgreSQL without statistics reads all waits of an execution for each item.
-- name: give_answers :count
UPDATE windlass_item SET status = 0, version = windlass_item.version + 1, cursor = k.step + 1, attempt = 1, due = NULL,
    type = k.type, value = k.value, error_class = NULL, error = NULL
FROM {answered_items} k WHERE {windlass_item.execution_id = k.execution_id} AND windlass_item.stage = k.stage
    AND windlass_item.path = k.path AND windlass_item.cursor = k.step AND windlass_item.status = 3

-- name: early_answers :rows
SELECT k.execution_id, k.step, k.path, k.round, w.type, w.answer FROM {wait_keys} k CROSS JOIN windlass_external_wait w
WHERE {w.execution_id = k.execution_id} AND w.step = k.step AND w.path = k.path AND w.round = k.round AND coalesce(w.status, '') = 'COMPLETED'

-- Whether a wait is open: written so that the planner cannot use the indexes of all open waits, and has to use the primary key. The other
-- conditions on `status` and `closed` in this file are written in the same way.
-- name: is_open :fragment
coalesce(windlass_external_wait.status, '') = 'WAITING'

-- name: wait_keys :bulk
execution_id id, step integer, path text, round integer

-- name: expire_external_waits :count
UPDATE windlass_external_wait SET status = 'EXPIRED' FROM {wait_keys} k
WHERE {same_wait} AND {is_open} AND windlass_external_wait.deadline <= {now}

-- name: expired_external_waits :rows
SELECT k.execution_id, k.step, k.path, k.round FROM {wait_keys} k CROSS JOIN windlass_external_wait w
WHERE {w.execution_id = k.execution_id} AND w.step = k.step AND w.path = k.path AND w.round = k.round AND coalesce(w.status, '') = 'EXPIRED'

-- The rounds of a step, for a single value or for items from one path to another.
-- name: rounds_of_step :rows
SELECT w.path, w.round, w.status, w.closed, w.type, w.answer, w.deadline FROM windlass_external_wait w
WHERE w.execution_id = :id AND w.step = :step AND w.path >= :first AND w.path <= :last ORDER BY w.path, w.round

-- Executions that have parked with a single value are due at the deadline, or now if the answer has already come.
-- name: park_values :rows
UPDATE windlass_hot SET due = p.due FROM (
    SELECT e.id, CASE WHEN w.status = 'COMPLETED' THEN {now} ELSE w.deadline END AS due
    FROM {ids} i CROSS JOIN windlass_execution e CROSS JOIN windlass_external_wait w
    WHERE {e.id = i.id} AND {w.execution_id = i.id} AND coalesce(w.step, 0) = e.cursor AND coalesce(w.path, '') = '' AND coalesce(w.closed, 0) = 0
        AND coalesce(w.status, '') IN ('WAITING', 'COMPLETED')
) p WHERE {windlass_hot.id = p.id} AND windlass_hot.status = 'PENDING'
RETURNING windlass_hot.queue, windlass_hot.priority, CASE WHEN windlass_hot.due <= {now} THEN 1 ELSE 0 END

-- If items are ordered, an item that has not ended blocks those after it.
-- name: held_up :fragment
EXISTS (SELECT 1 FROM windlass_item b WHERE b.execution_id = i.execution_id AND b.stage = i.stage AND b.path < i.path
    AND b.status IN (0, 1, 3))

-- Wakes what parked while an item was answered: here an execution that runs its few items itself, below a part.
-- name: wake_ready_mains :rows
UPDATE windlass_hot SET due = {now} WHERE id {in_ids} AND status = 'PENDING' AND due > {now} AND EXISTS (
    SELECT 1 FROM windlass_execution e JOIN windlass_item i ON {i.execution_id = e.id} AND i.stage = e.stage
    WHERE {e.id = windlass_hot.id} AND i.status = 0 AND (:ordered = 0 OR NOT {held_up}))
RETURNING queue, priority

-- name: wake_ready_parts :rows
UPDATE windlass_hot SET due = {now} WHERE id {in_ids} AND status = 'PENDING' AND due > {now} AND (
    SELECT 1 FROM windlass_part p JOIN windlass_item i ON {i.execution_id = p.execution_id} AND i.stage = p.stage
    WHERE p.job_id = windlass_hot.id AND i.path >= p.lo AND i.path < p.hi AND i.status = 0
        AND (:ordered = 0 OR NOT {held_up}) LIMIT 1) = 1
RETURNING queue, priority

-- name: close_external_waits :count
UPDATE windlass_external_wait SET closed = 1, status = CASE WHEN status = 'WAITING' THEN 'CANCELED' ELSE status END
WHERE execution_id {in_ids} AND coalesce(closed, 0) = 0 AND status <> 'COMPLETED'

-- An execution that starts over at a step requests new answers at that step and all steps after it.
-- name: close_rounds_from :count
UPDATE windlass_external_wait SET closed = 1, status = CASE WHEN status = 'WAITING' THEN 'CANCELED' ELSE status END
WHERE execution_id = :id AND step >= :step AND coalesce(closed, 0) = 0

-- The rounds in which an execution may have sent tokens. A step function may have sent one although its wait was not stored: its round was
-- the one after the last closed round.
-- name: rounds_of_execution :row
SELECT e.first_round, coalesce(max(w.round), 0), coalesce(max(w.round + w.closed), 0), (
    SELECT count(*) FROM windlass_transition t WHERE t.execution_id = e.id AND t.kind = 'redriven')
FROM windlass_execution e LEFT JOIN windlass_external_wait w ON {w.execution_id = e.id} AND coalesce(w.step, 0) >= :step
WHERE e.id = :id GROUP BY e.id, e.first_round

-- name: begin_rounds :count
UPDATE windlass_execution SET first_round = :round, asked_to = CASE WHEN asked_to > :reached THEN asked_to ELSE :reached END WHERE id = :id

-- Parts that have a job, of the current stage of executions: these jobs wait for answers to items.
-- name: parts_with_jobs :rows
SELECT p.execution_id, p.lo, p.hi, p.job_id FROM windlass_part p JOIN windlass_execution e ON {e.id = p.execution_id}
WHERE p.execution_id {in_ids} AND {p_live} AND p.stage = e.stage ORDER BY p.execution_id, p.lo

-- The state in which answers find their waits, read while the rows of the waiting jobs are locked.
-- name: waits_of_answers :rows
SELECT k.execution_id, k.step, k.path, k.round, e.status, e.stage,
    CASE WHEN k.path = '' THEN CASE WHEN e.streams = 0 THEN e.cursor ELSE -1 END ELSE coalesce((
        SELECT i.cursor FROM windlass_item i
        WHERE i.execution_id = k.execution_id AND i.stage = e.stage AND i.path = k.path AND i.status IN (0, 1, 3)), -1) END,
    w.status, w.closed, w.answer, w.type, w.deadline, CASE WHEN k.round = 1 THEN 1 ELSE coalesce((
        SELECT b.closed FROM windlass_external_wait b
        WHERE b.execution_id = k.execution_id AND b.step = k.step AND b.path = k.path AND b.round = k.round - 1), 0) END,
    CASE WHEN k.step <= e.asked_to THEN e.first_round ELSE 1 END, {now}
FROM {wait_keys} k CROSS JOIN windlass_execution e
LEFT JOIN windlass_external_wait w ON {w.execution_id = k.execution_id} AND w.step = k.step AND w.path = k.path AND w.round = k.round
WHERE {e.id = k.execution_id}

-- name: given_answers :bulk
execution_id id, step integer, path text, round integer, type integer, answer text, answered_by text, deadline integer

-- name: complete_external_waits :count
UPDATE windlass_external_wait SET status = 'COMPLETED', type = k.type, answer = k.answer, answered_by = k.answered_by, answered_at = {now}
FROM {given_answers} k WHERE {same_wait} AND {is_open}

-- A subquery for each row: in a join, PostgreSQL reads all executions while its statistics show a single row.
-- name: answered_tenant :fragment
(SELECT e.tenant FROM windlass_execution e WHERE e.id = k.execution_id)

-- name: answered_pipeline :fragment
(SELECT e.pipeline FROM windlass_execution e WHERE e.id = k.execution_id)

-- name: keep_early_answers :count
INSERT INTO windlass_external_wait (execution_id, step, path, round, tenant, pipeline, correlation_id, status, closed, type, answer,
    answered_by, answered_at, deadline, created_at)
SELECT k.execution_id, k.step, k.path, k.round, {answered_tenant}, {answered_pipeline},
    coalesce((SELECT j.correlation_id FROM windlass_job j WHERE j.id = k.execution_id), {answered_tenant}), 'COMPLETED', 0, k.type, k.answer,
    k.answered_by, {now}, k.deadline, {now}
FROM {given_answers} k WHERE {answered_tenant} IS NOT NULL
ON CONFLICT (execution_id, step, path, round) DO NOTHING

-- name: wake_answered :rows
UPDATE windlass_hot SET due = {now} WHERE id {in_ids} AND status IN ('PENDING', 'PAUSED') AND due > {now}
RETURNING queue, priority

-- name: next_awaiting_pipeline :row
SELECT w.pipeline FROM windlass_external_wait w WHERE w.status = 'WAITING' AND w.pipeline > :after ORDER BY w.pipeline LIMIT 1

-- name: pending_waits :rows
SELECT w.execution_id, w.step, w.path, w.round, w.tenant, w.pipeline, e.pipeline_version, e.definition_hash, w.correlation_id, w.request,
    w.created_at, w.deadline
FROM windlass_external_wait w JOIN windlass_execution e ON {e.id = w.execution_id}
WHERE w.status = 'WAITING' AND w.pipeline = :pipeline AND w.tenant = :tenant AND w.deadline > {now}
    AND (w.deadline, w.execution_id, w.step, w.path, w.round) > (:deadline, :id, :step, :path, :round)
ORDER BY w.deadline, w.execution_id, w.step, w.path, w.round LIMIT {window}

-- name: waits_of_correlation :rows
SELECT w.execution_id, w.step, w.path, w.round FROM windlass_external_wait w
WHERE w.tenant = :tenant AND w.correlation_id = :correlation_id AND w.status = :status AND w.closed = 0 LIMIT 2

-- name: definitions_of_executions :rows
SELECT e.id, e.tenant, e.pipeline, e.pipeline_version, e.definition_hash, e.status FROM windlass_execution e WHERE e.id {in_ids}

-- name: count_waits :row
SELECT count(*), min(o.deadline) FROM (
    SELECT w.deadline FROM windlass_external_wait w WHERE w.status = 'WAITING' AND w.pipeline = :pipeline
    ORDER BY w.pipeline, w.tenant, w.deadline LIMIT {window}) o

-- name: keep_secret :count
INSERT INTO windlass_secret (key_id, secret, created_at) VALUES (:key_id, :secret, {now}) ON CONFLICT (key_id) DO NOTHING

-- name: secrets :rows
SELECT key_id, secret FROM windlass_secret ORDER BY created_at, key_id
