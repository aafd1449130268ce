-- Progress and log lines of running jobs. None of this touches the job's own rows.

-- name: progress_rows :table
id id, fence integer, done real, total real, message text, at integer

-- name: line_rows :table
id id, fence integer, number integer, attempt integer, at integer, level integer, logger text, line text

-- Two conditions refuse a late report: the row in windlass_hot is deleted or has another fence; and, if that row changes between the read
-- and the write, the progress that is already stored has a higher fence.
-- name: save_progress :count
INSERT INTO windlass_progress (job_id, fence, done, total, message, at)
SELECT h.id, h.fence, r.done, r.total, r.message, r.at FROM {progress_rows} r CROSS JOIN windlass_hot h
WHERE {h.id = r.id} AND h.fence = r.fence
ON CONFLICT (job_id) DO UPDATE
SET fence = excluded.fence, done = excluded.done, total = excluded.total, message = excluded.message, at = excluded.at
WHERE windlass_progress.fence <= excluded.fence

-- name: save_lines :count
INSERT INTO windlass_job_log (job_id, fence, number, attempt, at, level, logger, line)
SELECT r.id, r.fence, r.number, r.attempt, r.at, r.level, r.logger, r.line FROM {line_rows} r
WHERE (SELECT 1 FROM windlass_job j WHERE j.id = r.id) = 1
ON CONFLICT (job_id, fence, number) DO NOTHING

-- name: log_lines :rows
SELECT fence, number, attempt, at, level, logger, line FROM windlass_job_log
WHERE job_id = :id AND (fence, number) > (:fence, :number) ORDER BY fence, number LIMIT :most

-- name: forget_progress :count
DELETE FROM windlass_progress WHERE job_id {in_ids}

-- name: forget_lines :count
DELETE FROM windlass_job_log WHERE job_id {in_ids}
