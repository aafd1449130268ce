-- Items of executions, and parts: ranges of items that one job processes. In bulk updates every column of a key is taken from the rows:
-- if one of them were a parameter, SQLite would read all items of the execution for each row.

-- name: item_writes :bulk
execution_id id, stage integer, path text, version integer, status integer, cursor integer, attempt integer, emitted integer,
last_hash text, delay_us integer, type integer, value text, error_class text, error text, due integer

-- name: write_items :count
UPDATE windlass_item SET version = windlass_item.version + 1, status = w.status, cursor = w.cursor, attempt = w.attempt,
    emitted = w.emitted, last_hash = w.last_hash, due = coalesce(w.due, {now} + w.delay_us), type = w.type, value = w.value,
    error_class = w.error_class, error = w.error
FROM {item_writes} w WHERE {windlass_item.execution_id = w.execution_id} AND windlass_item.stage = w.stage
    AND windlass_item.path = w.path AND windlass_item.version = w.version

-- name: new_items :bulk
execution_id id, stage integer, path text, status integer, cursor integer, type integer, value text

-- name: insert_items :count
INSERT INTO windlass_item (execution_id, stage, path, status, cursor, version, attempt, emitted, type, value)
SELECT execution_id, stage, path, status, cursor, 1, 1, 0, type, value FROM {new_items} n WHERE true
ON CONFLICT (execution_id, stage, path) DO NOTHING

-- name: items_to_run :rows
SELECT path, status, cursor, version, attempt, emitted, last_hash, due, type, value FROM windlass_item
WHERE execution_id = :id AND stage = :stage AND path >= :lo AND path < :hi
    AND (status <= 1 OR status = 3 AND due <= {now} + :ahead_us) ORDER BY path LIMIT {window}

-- name: items_done :rows
SELECT path, type, value FROM windlass_item
WHERE execution_id = :id AND stage = :stage AND path > :after AND status = 2 ORDER BY path LIMIT {window}

-- Items that have passed a segment and are due for the next one.
-- name: items_to_cut :rows
SELECT path FROM windlass_item
WHERE execution_id = :id AND stage = :stage AND path > :after AND status = 2 AND cursor = :cursor ORDER BY path LIMIT {window}

-- name: ready_items :count
UPDATE windlass_item SET status = 0, version = version + 1
WHERE execution_id = :id AND stage = :stage AND path > :after AND path <= :last AND status = 2 AND cursor = :cursor

-- name: next_item_due :row
SELECT min(CASE WHEN status = 0 THEN 0 ELSE coalesce(due, 0) END), {now} FROM windlass_item
WHERE execution_id = :id AND stage = :stage AND path >= :lo AND path < :hi AND status IN (0, 1, 3)

-- name: first_item_due :row
SELECT CASE WHEN status = 0 THEN 0 ELSE coalesce(due, 0) END, {now} FROM windlass_item
WHERE execution_id = :id AND stage = :stage AND path >= :lo AND path < :hi AND status IN (0, 1, 3) ORDER BY path LIMIT 1

-- name: item :row
SELECT path, status, cursor, version, attempt, emitted, last_hash, due, type, value FROM windlass_item
WHERE execution_id = :id AND stage = :stage AND path = :path

-- name: count_items :rows
SELECT status, count(*) FROM windlass_item WHERE execution_id = :id AND stage = :stage GROUP BY status

-- name: revive_items :count
UPDATE windlass_item SET status = 0, version = version + 1, due = NULL, error_class = NULL, error = NULL,
    attempt = CASE WHEN :reset = 1 THEN 1 ELSE attempt END
WHERE execution_id = :id AND stage = :stage AND status IN (1, 3, 5)

-- name: ready_outside_items :count
UPDATE windlass_item SET status = 0, version = version + 1, due = NULL WHERE execution_id = :id AND status = 3

-- Only the first of several failures is recorded. If it does not end the execution, the other items are retried once.
-- name: ready_failed_items :count
UPDATE windlass_item SET status = 0, version = version + 1, due = NULL
WHERE execution_id = :id AND stage = :stage AND status = 5

-- name: new_parts :table
execution_id id, stage integer, segment integer, lo text, hi text

-- name: insert_parts :count
INSERT INTO windlass_part (execution_id, stage, segment, lo, hi)
SELECT execution_id, stage, segment, lo, hi FROM {new_parts} n WHERE true
ON CONFLICT (execution_id, stage, segment, lo) DO NOTHING

-- name: part_of_job :rows
SELECT p.execution_id, p.stage, p.segment, p.lo, p.hi, p.trying, p.job_id FROM windlass_part p WHERE p.job_id {in_ids}

-- Whether a part has a job, written as in the condition of the partial index. Lookups of a part by its job do not use this expression, so
-- that the planner does not read the whole index for them.
-- name: live :fragment
CASE WHEN job_id IS NULL THEN 0 ELSE 1 END = 1

-- name: p_live :fragment
CASE WHEN p.job_id IS NULL THEN 0 ELSE 1 END = 1

-- name: set_trying :count
UPDATE windlass_part SET trying = :trying WHERE job_id = :job_id

-- name: end_parts :rows
DELETE FROM windlass_part WHERE job_id {in_ids} RETURNING execution_id, stage, segment

-- name: strand_parts :count
UPDATE windlass_part SET job_id = NULL, trying = NULL WHERE job_id {in_ids}

-- name: strand_left_parts :count
UPDATE windlass_part SET job_id = NULL, trying = NULL WHERE execution_id {in_ids} AND {live}
    AND NOT EXISTS (SELECT 1 FROM windlass_hot l WHERE {l.id = windlass_part.job_id})

-- name: live_parts :row
SELECT count(*) FROM windlass_part WHERE execution_id = :id AND stage = :stage AND segment = :segment AND {live}

-- name: waiting_parts :rows
SELECT lo FROM windlass_part
WHERE execution_id = :id AND stage = :stage AND segment = :segment AND job_id IS NULL ORDER BY lo LIMIT {window}

-- name: released_parts :table
execution_id id, stage integer, segment integer, lo text, job_id id

-- The last condition is written so that the planner cannot use the index of all parts without a job.
-- name: give_jobs :count
UPDATE windlass_part SET job_id = r.job_id FROM {released_parts} r
WHERE {windlass_part.execution_id = r.execution_id} AND windlass_part.stage = r.stage AND windlass_part.segment = r.segment
    AND windlass_part.lo = r.lo AND CASE WHEN windlass_part.job_id IS NULL THEN 1 ELSE 0 END = 1

-- name: drop_parts :count
DELETE FROM windlass_part WHERE execution_id = :id

-- name: detach_parts :count
UPDATE windlass_part SET job_id = NULL, trying = NULL WHERE execution_id = :id

-- name: any_part :row
SELECT segment FROM windlass_part WHERE execution_id = :id LIMIT 1

-- name: any_live_part :row
SELECT segment FROM windlass_part WHERE execution_id = :id AND {live} LIMIT 1

-- name: jobs_of_parts :rows
SELECT p.job_id FROM windlass_part p WHERE p.execution_id {in_ids} AND {p_live} ORDER BY p.job_id

-- name: rejected_lately :rows
SELECT l.pipeline, count(*) FROM (
    SELECT r.pipeline FROM windlass_reject r WHERE r.at > {now} - :since_us AND r.at <= {now} - :until_us
    ORDER BY r.at, r.id LIMIT {window}
) l GROUP BY l.pipeline
