-- Executions of pipelines. A plan that changes one first locks the row of its main job, which has the same id, in windlass_hot, in a
-- separate statement: what it reads after that stays valid until the commit. Lock order: main job, executions, parts, items, rejects.

-- name: new_executions :table
id id, tenant text, pipeline text, pipeline_version text, definition_hash text, key text, input_hash text, dlq integer, source text,
cursor integer, value_version integer, awaits integer

-- name: wanted_keys :table
tenant text, pipeline text, pipeline_version text, key text

-- name: find_executions_of_keys :rows
SELECT e.tenant, e.id, e.key, e.input_hash FROM {wanted_keys} w CROSS JOIN windlass_execution e
WHERE e.tenant = w.tenant AND e.pipeline = w.pipeline AND e.pipeline_version = w.pipeline_version AND e.key = w.key
    AND e.key IS NOT NULL

-- For an execution whose id is known: written so that the planner cannot use the index of all open executions.
-- name: still_open :fragment
coalesce(windlass_execution.status, '') = 'OPEN'

-- name: insert_executions :count
INSERT INTO windlass_execution (id, tenant, pipeline, pipeline_version, definition_hash, key, input_hash, dlq, status, row_version,
    written_by, cursor, attempt, value_version, stage, streams, filled, emitted, cut, rejected, paused, source, awaits, created_at, updated_at)
SELECT id, tenant, pipeline, pipeline_version, definition_hash, key, input_hash, dlq, 'OPEN', 1, '', cursor, 1, value_version, 0, 0,
    0, 0, '', 0, 0, source, awaits, {now}, {now}
FROM {new_executions} n WHERE true
ON CONFLICT (tenant, pipeline, pipeline_version, key) WHERE key IS NOT NULL DO NOTHING

-- name: log_rows :bulk
execution_id id, version integer, kind text, step integer, attempt integer, stage integer, node text, fence integer, run_us integer,
error_class text, error text, type integer, value text

-- name: insert_transitions :count
INSERT INTO windlass_transition (execution_id, version, at, kind, step, attempt, stage, node, fence, run_us, error_class, error, type, value)
SELECT execution_id, version, {now}, kind, step, attempt, stage, node, fence, run_us, error_class, error, type, value FROM {log_rows} l

-- name: e_state :fragment
e.id, e.tenant, e.key, e.status, e.row_version, e.cursor, e.attempt, e.value_version, e.stage, e.streams, e.filled, e.emitted,
e.last_hash, e.cut, e.rejected, e.paused, e.failing, e.first_round, e.asked_to, t.type, t.value

-- name: load_executions :rows
SELECT {e_state} FROM {ids} i CROSS JOIN windlass_execution e
LEFT JOIN windlass_transition t ON {t.execution_id = e.id} AND t.version = e.value_version
WHERE {e.id = i.id}

-- Claims of main jobs and of parts, each with its execution.
-- name: pipeline_claims :bulk
number integer, id id, fence integer, execution_id id

-- name: lock_pipeline_claims :rows
SELECT c.number, h.crash_count, e.status, e.paused, e.failing
FROM {pipeline_claims} c CROSS JOIN windlass_hot h CROSS JOIN windlass_execution e
WHERE {h.id = c.id} AND h.fence = c.fence AND {e.id = c.execution_id} ORDER BY c.id {lock_h}

-- name: clear_crashes :count
UPDATE windlass_hot SET crash_count = 0 WHERE id {in_ids} AND crash_count > 0

-- name: execution_advances :bulk
id id, written_by text, cursor integer, attempt integer, has_value integer

-- A write that was committed but whose answer was lost is recognized by its mark and not repeated. No index contains the columns that are
-- written here, so on PostgreSQL this is a HOT update. For that reason the time of the last transition is read from the log.
-- name: advance_executions :rows
UPDATE windlass_execution SET row_version = row_version + 1, written_by = a.written_by, cursor = a.cursor, attempt = a.attempt,
    value_version = CASE WHEN a.has_value = 1 THEN windlass_execution.row_version + 1 ELSE value_version END
FROM {execution_advances} a WHERE {windlass_execution.id = a.id} AND {still_open}
    AND windlass_execution.written_by <> a.written_by
RETURNING windlass_execution.id, windlass_execution.row_version

-- name: stage_advances :bulk
id id, written_by text, cursor integer, attempt integer, has_value integer, stage integer, streams integer, filled integer,
emitted integer, last_hash text, cut text

-- The same for executions whose position in their items changes.
-- name: advance_stages :rows
UPDATE windlass_execution SET row_version = row_version + 1, written_by = a.written_by, cursor = a.cursor, attempt = a.attempt,
    value_version = CASE WHEN a.has_value = 1 THEN windlass_execution.row_version + 1 ELSE value_version END,
    stage = a.stage, streams = a.streams, filled = a.filled, emitted = a.emitted, last_hash = a.last_hash, cut = a.cut
FROM {stage_advances} a WHERE {windlass_execution.id = a.id} AND {still_open}
    AND windlass_execution.written_by <> a.written_by
RETURNING windlass_execution.id, windlass_execution.row_version

-- name: execution_ends :table
id id, status text, transition_key text, error_code text, error_message text

-- name: end_executions :rows
UPDATE windlass_execution SET status = CASE WHEN r.status <> 'FAILED' THEN r.status WHEN dlq = 1 THEN 'DLQ' ELSE 'FAILED' END,
    row_version = row_version + 1, transition_key = coalesce(r.transition_key, CASE WHEN r.status <> 'FAILED'
        THEN windlass_execution.transition_key ELSE windlass_execution.id || ':' || cursor || ':' || attempt END),
    error_code = r.error_code, error_message = r.error_message, paused = 0, updated_at = {now}
FROM {execution_ends} r WHERE {windlass_execution.id = r.id} AND {still_open}
RETURNING windlass_execution.id, windlass_execution.row_version, windlass_execution.cursor, windlass_execution.attempt,
    windlass_execution.stage, windlass_execution.awaits

-- The columns of an execution that are stored in its dead letter.
-- name: facts_of_executions :rows
SELECT e.id, e.tenant, e.pipeline, e.key, e.definition_hash, e.cursor, e.attempt, e.dlq
FROM windlass_execution e WHERE e.id {in_ids}

-- name: lock_mains :rows
SELECT h.id, h.status, h.due, h.queue, h.priority FROM windlass_hot h WHERE h.id {in_ids} ORDER BY h.id {lock_h}

-- If no part has a job, or one has failed, the main job continues and creates jobs for the remaining parts. A paused execution is woken
-- when it is resumed.
-- name: wake_mains :rows
UPDATE windlass_hot SET due = {now} WHERE id {in_ids} AND status IN ('PENDING', 'PAUSED') AND due IS NULL AND EXISTS (
    SELECT 1 FROM windlass_execution e WHERE {e.id = windlass_hot.id} AND e.paused = 0 AND (e.failing IS NOT NULL OR NOT EXISTS (
        SELECT 1 FROM windlass_part p WHERE {p.execution_id = e.id} AND {p_live})))
RETURNING queue, priority

-- Executions that parked because they were paused, and have been resumed since.
-- name: wake_unpaused :rows
UPDATE windlass_hot SET due = {now} WHERE id {in_ids} AND status = 'PENDING' AND due IS NULL AND EXISTS (
    SELECT 1 FROM windlass_execution e WHERE {e.id = windlass_hot.id} AND e.paused = 0)
RETURNING queue, priority

-- name: wake_parts :rows
UPDATE windlass_hot SET due = {now} WHERE id {in_ids} AND status = 'PENDING' AND due IS NULL AND (
    SELECT 1 FROM windlass_part p JOIN windlass_execution e ON {e.id = p.execution_id}
    WHERE p.job_id = windlass_hot.id AND e.paused = 0 LIMIT 1) = 1
RETURNING queue, priority

-- name: note_failing :count
UPDATE windlass_execution SET failing = :failing WHERE id = :id AND {still_open} AND failing IS NULL

-- name: clear_failing :count
UPDATE windlass_execution SET failing = NULL WHERE id = :id

-- name: count_rejected :count
UPDATE windlass_execution SET rejected = rejected + :added WHERE id = :id

-- name: pause_executions :rows
UPDATE windlass_execution SET paused = 1, row_version = row_version + 1, updated_at = {now}
WHERE id {in_ids} AND {still_open} AND paused = 0 RETURNING id, row_version, cursor, attempt, stage

-- name: resume_executions :rows
UPDATE windlass_execution SET paused = 0, row_version = row_version + 1, updated_at = {now}
WHERE id {in_ids} AND {still_open} AND paused = 1 RETURNING id, row_version, cursor, attempt, stage

-- name: wake_resumed :rows
UPDATE windlass_hot SET due = {now} WHERE status = 'PENDING' AND due IS NULL AND id {in_ids}
RETURNING queue, priority

-- name: reopen_executions :rows
UPDATE windlass_execution SET status = 'OPEN', row_version = row_version + 1, attempt = CASE WHEN :reset = 1 THEN 1 ELSE attempt END,
    failing = NULL, paused = 0, error_code = NULL, error_message = NULL, written_by = '', updated_at = {now}
WHERE id {in_ids} AND status IN ('FAILED', 'DLQ')
RETURNING id, row_version, cursor, attempt, stage, streams, filled

-- name: rewind_execution :count
UPDATE windlass_execution SET cursor = :cursor, attempt = 1, value_version = :value_version, stage = :stage, streams = :streams,
    filled = 0, emitted = 0, last_hash = NULL, cut = '', rejected = 0 WHERE id = :id

-- name: move_execution :count
UPDATE windlass_execution SET pipeline_version = :version, definition_hash = :hash, awaits = CASE WHEN :awaits = 1 THEN 1 ELSE awaits END WHERE id = :id

-- name: retarget_job :count
UPDATE windlass_job SET target = :target WHERE id = :id

-- name: retarget_hot :count
UPDATE windlass_hot SET target = :target, lane = :lane WHERE id = :id

-- name: execution_view :fragment
e.id, e.tenant, e.key, e.pipeline, e.pipeline_version, e.definition_hash, e.status, e.row_version, e.cursor, e.attempt,
e.transition_key, e.error_code, e.error_message, e.rejected, e.paused, e.created_at, coalesce(t.at, e.updated_at), h.status, h.due, n.lease_until,
j.args, d.result, j.correlation_id, j.target, CASE WHEN e.awaits = 1 THEN (
    SELECT min(w.deadline) FROM windlass_external_wait w WHERE w.execution_id = e.id AND w.status = 'WAITING') END

-- name: e_tables :fragment
windlass_execution e LEFT JOIN windlass_job j ON {j.id = e.id} LEFT JOIN windlass_hot h ON {h.id = e.id}
LEFT JOIN windlass_done d ON {d.id = e.id} LEFT JOIN windlass_node n ON n.id = h.node
LEFT JOIN windlass_transition t ON {t.execution_id = e.id} AND t.version = e.row_version

-- name: get_executions :rows
SELECT {execution_view} FROM {e_tables} WHERE e.id {in_ids}

-- name: find_executions :rows
SELECT {execution_view} FROM {e_tables} WHERE e.tenant = :tenant AND e.id < :before ORDER BY e.id DESC LIMIT {window}

-- name: find_executions_of_pipeline :rows
SELECT {execution_view} FROM {e_tables} WHERE e.tenant = :tenant AND e.pipeline = :pipeline AND e.id < :before
ORDER BY e.id DESC LIMIT {window}

-- name: part_states :rows
SELECT p.execution_id, h.status, h.due, n.lease_until FROM windlass_part p JOIN windlass_hot h ON {h.id = p.job_id}
LEFT JOIN windlass_node n ON n.id = h.node WHERE p.execution_id {in_ids} AND {p_live}

-- name: transitions_of :rows
SELECT version, at, kind, step, attempt, stage, node, fence, run_us, error_class, error, type, value FROM windlass_transition
WHERE execution_id = :id AND version > :after ORDER BY version LIMIT {window}

-- The input of a step before the first expansion: the output of the step before it, or the item that the execution was submitted with.
-- name: value_before_step :row
SELECT t.version FROM windlass_transition t WHERE t.execution_id = :id AND t.value IS NOT NULL AND t.stage = 0
    AND (t.kind IN ('step', 'answered') AND t.step < :step OR t.kind = 'submitted')
ORDER BY t.version DESC LIMIT 1

-- name: last_stage :row
SELECT coalesce(max(t.stage), 0) FROM windlass_transition t WHERE t.execution_id = :id

-- name: execution_version :row
SELECT e.tenant, e.status, e.row_version, e.awaits, e.cursor,
    CASE WHEN e.streams = 1 OR e.filled > 0 THEN 1 ELSE 0 END FROM windlass_execution e WHERE e.id = :id

-- name: save_pipeline :count
INSERT INTO windlass_pipeline (name, version, hash, definition, seen_at) VALUES (:name, :version, :hash, :definition, {now})
ON CONFLICT (name, version, hash) DO UPDATE SET seen_at = excluded.seen_at

-- name: pipelines :rows
SELECT name, version, hash, definition, seen_at FROM windlass_pipeline ORDER BY name, version, seen_at DESC

-- The next version of a pipeline that has open executions: one index lookup, however many executions a version has.
-- name: next_open_version :row
SELECT e.pipeline, e.pipeline_version FROM windlass_execution e
WHERE e.status = 'OPEN' AND (e.pipeline, e.pipeline_version) > (:pipeline, :version)
ORDER BY e.pipeline, e.pipeline_version LIMIT 1

-- name: open_of_version :rows
SELECT o.definition_hash, count(*) FROM (
    SELECT e.definition_hash FROM windlass_execution e
    WHERE e.status = 'OPEN' AND e.pipeline = :pipeline AND e.pipeline_version = :version
    ORDER BY e.pipeline, e.pipeline_version, e.id LIMIT {window}
) o GROUP BY o.definition_hash ORDER BY o.definition_hash

-- name: open_of_hash :rows
SELECT {execution_view} FROM {e_tables}
WHERE e.status = 'OPEN' AND e.pipeline = :pipeline AND e.pipeline_version = :version AND e.definition_hash <> :hash
ORDER BY e.id LIMIT {window}

-- name: ended_lately :rows
SELECT r.pipeline, count(*) FROM (
    SELECT e.pipeline FROM windlass_execution e
    WHERE e.status = :status AND e.status <> 'OPEN' AND e.updated_at > {now} - :since_us AND e.updated_at <= {now} - :until_us
    ORDER BY e.status, e.updated_at, e.id LIMIT {window}
) r GROUP BY r.pipeline

-- name: hot_window :row
SELECT h.id FROM windlass_hot h WHERE h.id > :after ORDER BY h.id LIMIT 1 OFFSET {window}

-- Executions that wait for their parts although a part has failed or no part has a live job.
-- name: left_waiting :rows
SELECT h.id FROM windlass_hot h JOIN windlass_execution e ON {e.id = h.id}
WHERE h.id > :after AND h.id <= :until AND h.status = 'PENDING' AND h.due IS NULL AND coalesce(e.status, '') = 'OPEN' AND e.paused = 0
    AND (e.failing IS NOT NULL OR NOT EXISTS (
        SELECT 1 FROM windlass_part p WHERE {p.execution_id = e.id} AND (SELECT 1 FROM windlass_hot l WHERE l.id = p.job_id) = 1))
ORDER BY h.id LIMIT {most}

-- Jobs of parts that wait to be resumed although their execution is not paused.
-- name: left_parked :rows
SELECT h.id, p.execution_id FROM windlass_hot h JOIN windlass_part p ON {p.job_id = h.id} JOIN windlass_execution e ON {e.id = p.execution_id}
WHERE h.id > :after AND h.id <= :until AND h.status = 'PENDING' AND h.due IS NULL AND coalesce(e.status, '') = 'OPEN' AND e.paused = 0
ORDER BY h.id LIMIT {most}

-- Counts the items of all stages of an execution, by the step that they enter next.
-- name: item_states :rows
SELECT stage, cursor, status, count(*) FROM windlass_item WHERE execution_id = :id GROUP BY stage, cursor, status
ORDER BY stage, cursor, status

-- The step that produced each stage.
-- name: steps_of_stages :rows
SELECT t.stage, min(t.step) FROM windlass_transition t
WHERE t.execution_id = :id AND t.stage > 0 AND t.kind IN ('chunk', 'staged') GROUP BY t.stage

-- name: parts_left :row
SELECT count(*) FROM windlass_part WHERE execution_id = :id

-- name: jobs_of_live_parts :rows
SELECT p.job_id, p.stage, p.segment, p.lo, p.hi, h.status, h.due, h.node FROM windlass_part p JOIN windlass_hot h ON {h.id = p.job_id}
WHERE p.execution_id = :id AND {p_live} ORDER BY p.stage, p.segment, p.lo LIMIT {window}

-- name: next_retried_item :row
SELECT path, cursor, attempt, due, error FROM windlass_item
WHERE execution_id = :id AND stage = :stage AND status = 1 ORDER BY due, path LIMIT 1

-- name: last_retry :row
SELECT t.step, t.attempt, t.error FROM windlass_transition t
WHERE t.execution_id = :id AND t.kind = 'retry' ORDER BY t.version DESC LIMIT 1
