-- Moves each ended job from the working tables to one row of the archive. Tags, idempotency keys and dead letters stay where they
-- are: they refer to archived jobs too.

-- Reads along the primary key: ids contain the creation time, so the oldest jobs come first, and no index on finished_at is needed. The
-- plan checks the upper bound: with both bounds in the condition and no statistics, PostgreSQL expects few rows and sorts them all.
-- name: oldest_ended :rows
SELECT d.id, CASE WHEN {d_is_old} THEN 1 ELSE 0 END,
    CASE WHEN {d_is_old} THEN {d_flow} END
FROM windlass_done d WHERE d.id > :after ORDER BY d.id LIMIT {window}

-- name: d_is_old :fragment
d.status <> 'PAUSED' AND d.finished_at <= {now} - :age_us

-- The flow of a job. A child of a batch has no row in windlass_flow: its flow is the batch. If no batch exists, no job is looked up.
-- name: d_flow :fragment
coalesce(
    (SELECT f.flow_id FROM windlass_flow f WHERE f.job_id = d.id),
    CASE WHEN {has_batches} THEN (SELECT j.batch_id FROM windlass_job j WHERE j.id = d.id) END
)

-- name: has_batches :fragment
(SELECT 1 FROM windlass_group b WHERE b.kind = 2 ORDER BY b.id LIMIT 1) = 1

-- name: store_time :row
SELECT {now}

-- name: lock_archivable :rows
SELECT d.id, {d_flow}, {f.flow_columns} FROM windlass_done d LEFT JOIN windlass_flow f ON {f.job_id = d.id}
WHERE d.id {in_ids} AND {d_is_old} ORDER BY d.id

-- name: histories :rows
SELECT {attempt_columns} FROM windlass_attempt WHERE job_id {in_ids} ORDER BY job_id, fence

-- name: archived_rows :table
id id, queue text, target text, status text, business_key text, created_at integer, finished_at integer, flow_id id, job text

-- name: archive_jobs :count
INSERT INTO windlass_archive ({archive_columns}, job) SELECT {archive_columns}, job FROM {archived_rows} r WHERE true
ON CONFLICT (id) DO NOTHING

-- name: forget_jobs :count
DELETE FROM windlass_job WHERE id {in_ids}

-- name: forget_attempts :count
DELETE FROM windlass_attempt WHERE job_id {in_ids}

-- Restores an archived dead letter that is retried or canceled: one row at a time, because callers name single jobs.

-- A batch is not a dead letter: it is restored with its flow and its counts when one of its children is restored.
-- name: lock_archived :rows
SELECT {archive_columns}, job FROM windlass_archive WHERE id {in_ids} AND status = 'FAILED' AND target <> 'windlass:batch' ORDER BY id

-- name: restore_job :count
INSERT INTO windlass_job ({job_columns}) VALUES ({:job_columns})

-- name: restore_done :count
INSERT INTO windlass_done (id, queue, target, {state_columns}, {end_columns})
VALUES (:id, :queue, :target, {:state_columns}, {:end_columns})

-- name: restore_attempt :count
INSERT INTO windlass_attempt ({attempt_columns}) VALUES ({:attempt_columns})

-- name: forget_archived :count
DELETE FROM windlass_archive WHERE id {in_ids}

-- Flows are archived as a whole, in several transactions if necessary, and restored as a whole.

-- If one job of a flow is archived, the whole flow has ended. So only the first transaction checks all of its jobs, the newest first:
-- jobs that have not ended are mostly among them.
-- name: unarchivable_flows :rows
SELECT r.id FROM {ids} r
WHERE (SELECT 1 FROM windlass_archive a WHERE a.flow_id = r.id LIMIT 1) IS NULL AND (
    SELECT 1 FROM windlass_flow f WHERE f.flow_id = r.id AND coalesce(
        (SELECT CASE WHEN {d_is_old} THEN 0 ELSE 1 END FROM windlass_done d WHERE d.id = f.job_id),
        (SELECT 1 FROM windlass_hot h WHERE h.id = f.job_id), 0
    ) = 1 ORDER BY f.job_id DESC LIMIT 1
) IS NOT NULL

-- name: live_flows :rows
SELECT r.id FROM {ids} r WHERE (
    SELECT 1 FROM windlass_flow f WHERE f.flow_id = r.id AND (SELECT 1 FROM windlass_hot h WHERE h.id = f.job_id) = 1
    ORDER BY f.job_id DESC LIMIT 1
) IS NOT NULL

-- name: forget_flow :count
DELETE FROM windlass_flow WHERE job_id {in_ids}

-- Deletes the groups of flows that have no rows left.
-- name: forget_flow_groups :rows
DELETE FROM windlass_group WHERE flow_id {in_ids}
    AND (SELECT 1 FROM windlass_flow f WHERE f.flow_id = windlass_group.flow_id LIMIT 1) IS NULL
RETURNING id

-- name: forget_deltas :count
DELETE FROM windlass_group_delta WHERE group_id {in_ids}

-- name: group_totals :rows
SELECT id, total FROM windlass_group WHERE id {in_ids}

-- name: flows_of_jobs :rows
SELECT job_id, flow_id FROM windlass_flow WHERE job_id {in_ids}
UNION ALL SELECT id, batch_id FROM windlass_job WHERE id {in_ids} AND batch_id IS NOT NULL

-- Counts the rows of a flow in the archive and in the working tables, up to a limit.
-- name: flow_sizes :rows
SELECT r.id,
    (SELECT count(*) FROM (SELECT 1 FROM windlass_archive a WHERE a.flow_id = r.id LIMIT {most}) archived),
    (SELECT count(*) FROM (SELECT 1 FROM windlass_flow f WHERE f.flow_id = r.id LIMIT {most}) working)
FROM {ids} r

-- name: lock_archived_flows :rows
SELECT {d.archive_columns}, d.job FROM windlass_archive d WHERE d.flow_id {in_ids} ORDER BY coalesce(d.id, d.id) {lock_d}

-- name: ended_members :rows
SELECT f.group_id, f.flow_id, count(*), sum(CASE WHEN d.status = 'SUCCEEDED' THEN 1 ELSE 0 END)
FROM windlass_flow f JOIN windlass_done d ON {d.id = f.job_id}
WHERE f.flow_id {in_ids} AND f.group_id IS NOT NULL GROUP BY f.group_id, f.flow_id

-- name: restore_groups :count
INSERT INTO windlass_group (id, flow_id, total, succeeded, failed, touched_at)
SELECT id, flow_id, total, succeeded, failed, {now} FROM {group_rows} g WHERE true ON CONFLICT (id) DO NOTHING
