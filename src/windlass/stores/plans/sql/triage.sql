-- Pages of dead letters. Each page follows the index of one filter, from a position in the order in which the jobs failed. The plan applies
-- the other filters to the rows it has read.

-- name: older_letters :fragment
AND hidden = 0 AND (created_at, job_id) < (:at, :id) ORDER BY created_at DESC, job_id DESC LIMIT {window}

-- name: newer_letters :fragment
AND hidden = 0 AND (created_at, job_id) > (:at, :id) ORDER BY created_at, job_id LIMIT {window}

-- name: letter_facts :fragment
SELECT job_id, created_at, fingerprint, target, error_class, reason, queue, kind FROM windlass_dead_letter

-- name: older_of_any :rows
{letter_facts} WHERE true {older_letters}

-- name: older_of_fingerprint :rows
{letter_facts} WHERE fingerprint = :value {older_letters}

-- name: older_of_target :rows
{letter_facts} WHERE target = :value {older_letters}

-- name: older_of_queue :rows
{letter_facts} WHERE queue = :value {older_letters}

-- name: older_of_error_class :rows
{letter_facts} WHERE error_class = :value {older_letters}

-- name: older_of_reason :rows
{letter_facts} WHERE reason = :value {older_letters}

-- name: older_of_kind :rows
{letter_facts} WHERE kind = :value {older_letters}

-- name: newer_of_any :rows
{letter_facts} WHERE true {newer_letters}

-- name: newer_of_fingerprint :rows
{letter_facts} WHERE fingerprint = :value {newer_letters}

-- name: newer_of_target :rows
{letter_facts} WHERE target = :value {newer_letters}

-- name: newer_of_queue :rows
{letter_facts} WHERE queue = :value {newer_letters}

-- name: newer_of_error_class :rows
{letter_facts} WHERE error_class = :value {newer_letters}

-- name: newer_of_reason :rows
{letter_facts} WHERE reason = :value {newer_letters}

-- name: newer_of_kind :rows
{letter_facts} WHERE kind = :value {newer_letters}

-- name: with_tag :rows
SELECT t.job_id FROM windlass_job_tag t WHERE t.tag = :tag AND t.job_id {in_ids}

-- name: get_letters :rows
SELECT d.job_id, d.fingerprint, d.created_at, d.target, d.error_class, d.reason, d.execution_key, d.correlation_id, d.envelope, d.kind,
    d.tenant, d.hidden
FROM windlass_dead_letter d WHERE d.job_id {in_ids}

-- name: largest_groups :rows
SELECT fingerprint, target, error_class, count FROM windlass_dead_letter_group
WHERE count > 0 AND (count, fingerprint) < (:count, :fingerprint) ORDER BY count DESC, fingerprint DESC LIMIT {window}

-- name: group_facts :rows
SELECT g.fingerprint, g.target, g.error_class, g.sample, g.count,
    (SELECT min(d.created_at) FROM windlass_dead_letter d WHERE d.hidden = 0 AND d.fingerprint = g.fingerprint),
    (SELECT max(d.created_at) FROM windlass_dead_letter d WHERE d.hidden = 0 AND d.fingerprint = g.fingerprint)
FROM windlass_dead_letter_group g WHERE g.fingerprint {in_names}

-- name: latest_alerts :rows
SELECT id, target, error_hash, error_class, sample, count, first_job_id, last_job_id, first_at, last_at FROM windlass_alert
WHERE (first_at, id) < (:at, :id) ORDER BY first_at DESC, id DESC LIMIT {window}

-- The outcomes of re-driven jobs.
-- name: statuses_of_jobs :rows
SELECT j.id, coalesce(h.status, d.status) FROM windlass_job j
LEFT JOIN windlass_hot h ON {h.id = j.id}
LEFT JOIN windlass_done d ON {d.id = j.id}
WHERE j.id {in_ids} AND coalesce(h.status, d.status) IS NOT NULL
UNION ALL
SELECT a.id, a.status FROM windlass_archive a WHERE a.id {in_ids}

-- name: retried_jobs :rows
SELECT h.attempts, j.options FROM windlass_hot h JOIN windlass_job j ON {j.id = h.id}
WHERE h.id {in_ids} AND h.status = 'PENDING' AND h.due IS NOT NULL AND h.attempts > 0

-- name: retried_steps :rows
SELECT e.pipeline, e.pipeline_version, e.cursor, e.attempt FROM windlass_execution e
WHERE e.id {in_ids} AND coalesce(e.status, '') = 'OPEN' AND e.attempt > 1

-- name: retried_items :rows
SELECT e.pipeline, e.pipeline_version, i.cursor, i.attempt FROM windlass_part p
JOIN windlass_execution e ON {e.id = p.execution_id}
JOIN windlass_item i ON {i.execution_id = p.execution_id} AND i.stage = p.stage AND i.path >= p.lo AND i.path < p.hi AND i.status = 1
WHERE p.execution_id {in_ids} AND {p_live}
LIMIT {window}
