-- Sources of `app.find`: each returns the next ids below a given one, newest first, at most {window}, so that the cost of a page does not
-- depend on the number of jobs. The plan checks the remaining filters.
-- A status is written as a range of (status, id), because with `status = …` PostgreSQL may read every row of the status and sort them
-- (3,016 buffers a page among 3,000 failures, instead of 259).

-- name: find_any :rows
SELECT j.id, coalesce(h.status, d.status), j.queue, j.target, j.created_at
FROM (SELECT id, queue, target, created_at FROM windlass_job WHERE id < :before ORDER BY id DESC LIMIT {window}) j
LEFT JOIN windlass_hot h ON {h.id = j.id} LEFT JOIN windlass_done d ON {d.id = j.id}
ORDER BY j.id DESC

-- name: find_keyed :rows
SELECT j.id, coalesce(h.status, d.status), j.queue, j.target, j.created_at
FROM (
    SELECT id, queue, target, created_at FROM windlass_job
    WHERE business_key = :key AND business_key IS NOT NULL AND id < :before ORDER BY id DESC LIMIT {window}
) j
LEFT JOIN windlass_hot h ON {h.id = j.id} LEFT JOIN windlass_done d ON {d.id = j.id}
ORDER BY j.id DESC

-- name: find_tagged :rows
SELECT t.job_id, coalesce(h.status, d.status, a.status), coalesce(j.queue, a.queue), coalesce(j.target, a.target),
    coalesce(j.created_at, a.created_at)
FROM (SELECT job_id FROM windlass_job_tag WHERE tag = :tag AND job_id < :before ORDER BY job_id DESC LIMIT {window}) t
LEFT JOIN windlass_job j ON {j.id = t.job_id} LEFT JOIN windlass_hot h ON {h.id = t.job_id}
LEFT JOIN windlass_done d ON {d.id = t.job_id} LEFT JOIN windlass_archive a ON {a.id = t.job_id}
ORDER BY t.job_id DESC

-- name: find_live :rows
SELECT h.id, h.status, h.queue, h.target, j.created_at
FROM (SELECT id, status, queue, target FROM windlass_hot WHERE id < :before ORDER BY id DESC LIMIT {window}) h
JOIN windlass_job j ON {j.id = h.id}
ORDER BY h.id DESC

-- name: find_running :rows
SELECT h.id, h.status, h.queue, h.target, j.created_at
FROM (
    SELECT id, status, queue, target FROM windlass_hot
    WHERE status = 'RUNNING' AND node > '' AND id < :before ORDER BY id DESC LIMIT {window}
) h
JOIN windlass_job j ON {j.id = h.id}
ORDER BY h.id DESC

-- name: find_resting :rows
SELECT h.id, h.status, h.queue, h.target, j.created_at
FROM (
    SELECT id, status, queue, target FROM windlass_hot
    WHERE (status, id) < (:status, :before) AND status >= :status AND status IN ('PAUSED', 'WAITING')
    ORDER BY status DESC, id DESC LIMIT {window}
) h
JOIN windlass_job j ON {j.id = h.id}
ORDER BY h.id DESC

-- name: find_ended :rows
SELECT d.id, d.status, d.queue, d.target, j.created_at
FROM (
    SELECT id, status, queue, target FROM windlass_done
    WHERE (status, id) < (:status, :before) AND status >= :status AND status <> 'SUCCEEDED'
    ORDER BY status DESC, id DESC LIMIT {window}
) d
JOIN windlass_job j ON {j.id = d.id}
ORDER BY d.id DESC

-- name: find_done :rows
SELECT d.id, d.status, d.queue, d.target, j.created_at
FROM (SELECT id, status, queue, target FROM windlass_done WHERE id < :before ORDER BY id DESC LIMIT {window}) d
JOIN windlass_job j ON {j.id = d.id}
ORDER BY d.id DESC

-- name: find_archived :rows
SELECT id, status, queue, target, created_at FROM windlass_archive WHERE id < :before ORDER BY id DESC LIMIT {window}

-- name: find_archived_keyed :rows
SELECT id, status, queue, target, created_at FROM windlass_archive
WHERE business_key = :key AND business_key IS NOT NULL AND id < :before ORDER BY id DESC LIMIT {window}

-- name: find_archived_ended :rows
SELECT id, status, queue, target, created_at FROM windlass_archive
WHERE (status, id) < (:status, :before) AND status >= :status AND status <> 'SUCCEEDED'
ORDER BY status DESC, id DESC LIMIT {window}

-- Children are newer than their batch, and may be millions: batches are found by their groups. Archived ones have none.
-- name: find_batches :rows
SELECT g.id, coalesce(h.status, d.status), j.queue, j.target, j.created_at
FROM (SELECT id FROM windlass_group WHERE kind = 2 AND id < :before ORDER BY id DESC LIMIT {window}) g
JOIN windlass_job j ON {j.id = g.id} LEFT JOIN windlass_hot h ON {h.id = g.id} LEFT JOIN windlass_done d ON {d.id = g.id}
ORDER BY g.id DESC
