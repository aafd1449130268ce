-- Deletes executions that ended long ago, with all of their rows except rejects and dead letters, which have their own retention. An
-- execution that has a dead letter is kept as long as the dead letter.

-- name: old_executions :rows
SELECT e.id, e.updated_at, e.awaits FROM windlass_execution e
WHERE e.status = :status AND e.status <> 'OPEN' AND e.updated_at <= {now} - :older_than_us AND (e.updated_at, e.id) > (:at, :id)
ORDER BY e.updated_at, e.id LIMIT {window}

-- name: with_letters :rows
SELECT l.job_id FROM windlass_dead_letter l WHERE l.job_id {in_ids}

-- name: purge_items :count
DELETE FROM windlass_item WHERE (execution_id, stage, path) IN (
    SELECT i.execution_id, i.stage, i.path FROM windlass_item i WHERE i.execution_id {in_ids} LIMIT {window})

-- name: purge_transitions :count
DELETE FROM windlass_transition WHERE (execution_id, version) IN (
    SELECT t.execution_id, t.version FROM windlass_transition t WHERE t.execution_id {in_ids} LIMIT {window})

-- name: purge_external_waits :count
DELETE FROM windlass_external_wait WHERE (execution_id, step, path, round) IN (
    SELECT w.execution_id, w.step, w.path, w.round FROM windlass_external_wait w WHERE w.execution_id {in_ids} LIMIT {window})

-- name: purge_parts :count
DELETE FROM windlass_part WHERE execution_id {in_ids}

-- name: purge_executions :count
DELETE FROM windlass_execution WHERE id {in_ids} AND coalesce(status, '') <> 'OPEN'
