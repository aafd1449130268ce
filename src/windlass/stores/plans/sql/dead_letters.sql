-- Dead letters: written by the transaction in which a job finally fails, deleted by the transaction that revives or deletes the job.
-- Locks are taken in one order: first the rows of jobs, then those of fingerprints, in the order of fingerprints.

-- name: deaths :table
fingerprint text, target text, error_class text, sample text, count integer, first_job_id id, last_job_id id, alert_id id

-- name: letters :table
id id, fingerprint text, target text, queue text, error_class text, reason text, envelope text, kind text, tenant text,
execution_key text, raised integer

-- An alert counts failed jobs for some time after it was raised; the first job that fails after that raises the next alert. The lock on
-- this row decides which job is the first.
-- name: count_deaths :count
INSERT INTO windlass_dead_letter_group (fingerprint, target, error_class, sample, count, last_at, alert_id, alert_at)
SELECT fingerprint, target, error_class, sample, count, {now}, alert_id, {now} FROM {deaths} d WHERE true ORDER BY fingerprint
ON CONFLICT (fingerprint) DO UPDATE
SET target = excluded.target, error_class = excluded.error_class, sample = excluded.sample,
    count = windlass_dead_letter_group.count + excluded.count,
    last_at = CASE WHEN excluded.last_at > windlass_dead_letter_group.last_at THEN excluded.last_at
        ELSE windlass_dead_letter_group.last_at END,
    alert_id = CASE WHEN excluded.alert_at >= windlass_dead_letter_group.alert_at + :window_us THEN excluded.alert_id
        ELSE windlass_dead_letter_group.alert_id END,
    alert_at = CASE WHEN excluded.alert_at >= windlass_dead_letter_group.alert_at + :window_us THEN excluded.alert_at
        ELSE windlass_dead_letter_group.alert_at END

-- name: present_alerts :rows
SELECT fingerprint, alert_id FROM windlass_dead_letter_group WHERE fingerprint {in_names}

-- name: save_alerts :count
INSERT INTO windlass_alert (id, target, error_hash, error_class, sample, count, first_job_id, last_job_id, first_at, last_at)
SELECT d.alert_id, d.target, d.fingerprint, d.error_class, d.sample, d.count, d.first_job_id, d.last_job_id, g.alert_at, g.last_at
FROM {deaths} d JOIN windlass_dead_letter_group g ON {g.fingerprint = d.fingerprint} ORDER BY d.fingerprint
ON CONFLICT (id) DO UPDATE
SET count = windlass_alert.count + excluded.count, last_job_id = excluded.last_job_id, last_at = excluded.last_at

-- The key of an execution is in the letter; the key of a job is its idempotency key.
-- name: insert_letters :count
INSERT INTO windlass_dead_letter (job_id, fingerprint, envelope, created_at, hidden, target, queue, error_class, reason,
    execution_key, correlation_id, raised, kind, tenant)
SELECT r.id, r.fingerprint, r.envelope, {now}, 0, r.target, r.queue, r.error_class, r.reason,
    CASE WHEN r.kind = 'job' THEN j.idempotency_key ELSE r.execution_key END, j.correlation_id, r.raised, r.kind, r.tenant
FROM {letters} r JOIN windlass_job j ON {j.id = r.id} WHERE true
ON CONFLICT (job_id) DO UPDATE
SET fingerprint = excluded.fingerprint, envelope = excluded.envelope, created_at = excluded.created_at, hidden = 0,
    reason = excluded.reason, error_class = excluded.error_class, raised = excluded.raised, target = excluded.target,
    kind = excluded.kind, tenant = excluded.tenant, execution_key = excluded.execution_key

-- name: letters_counted :rows
SELECT d.job_id, d.fingerprint, d.hidden FROM windlass_dead_letter d WHERE d.job_id {in_ids}

-- name: count_letters :count
INSERT INTO windlass_dead_letter_group (fingerprint, target, error_class, sample, count, last_at, alert_id, alert_at)
SELECT fingerprint, target, error_class, sample, count, 0, alert_id, 0 FROM {deaths} d WHERE true ORDER BY fingerprint
ON CONFLICT (fingerprint) DO UPDATE SET count = windlass_dead_letter_group.count + excluded.count

-- name: forget_letters :count
DELETE FROM windlass_dead_letter WHERE job_id {in_ids}

-- name: hide_letters :count
UPDATE windlass_dead_letter SET hidden = :hidden WHERE job_id {in_ids}

-- name: letters_with_flows :fragment
SELECT l.job_id, l.created_at, l.kind, coalesce(
    (SELECT f.flow_id FROM windlass_flow f WHERE f.job_id = l.job_id),
    CASE WHEN {has_batches} THEN (SELECT j.batch_id FROM windlass_job j WHERE j.id = l.job_id) END
) FROM windlass_dead_letter l

-- name: next_old :fragment
l.hidden = 0 AND l.created_at <= {now} - :older_than_us AND (l.created_at, l.job_id) > (:at, :id)
ORDER BY l.created_at, l.job_id LIMIT {window}

-- name: old_letters :rows
{letters_with_flows} WHERE {next_old}

-- name: old_letters_of_kind :rows
{letters_with_flows} WHERE l.kind = :kind AND {next_old}

-- name: tags_of_jobs :rows
SELECT j.id, j.tags FROM windlass_job j WHERE j.id {in_ids} AND j.tags IS NOT NULL

-- name: forget_tags :count
DELETE FROM windlass_job_tag WHERE (tag, job_id) IN (SELECT key, id FROM {keys} k)

-- The outer conditions matter if another transaction increments the row at the same time: PostgreSQL checks them again after it has
-- waited for the lock, but does not repeat the subquery.
-- name: forget_alerts :count
DELETE FROM windlass_alert WHERE last_at <= {now} - :older_than_us AND id IN (
    SELECT id FROM windlass_alert
    WHERE first_at <= {now} - :older_than_us AND last_at <= {now} - :older_than_us ORDER BY first_at, id LIMIT {window}
)

-- name: forget_groups :count
DELETE FROM windlass_dead_letter_group WHERE count <= 0 AND fingerprint IN (
    SELECT fingerprint FROM windlass_dead_letter_group
    WHERE count <= 0 AND last_at <= {now} - :older_than_us ORDER BY count, fingerprint LIMIT {window}
)

-- name: save_audit :count
INSERT INTO windlass_audit (id, at, principal, action, count, detail) VALUES (:id, {now}, :principal, :action, :affected, :detail)
ON CONFLICT (id) DO UPDATE SET count = excluded.count, detail = excluded.detail
