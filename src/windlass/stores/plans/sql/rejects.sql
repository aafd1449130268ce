-- Rejects: items that were given up while their execution continued. Each page follows the index of one filter, from a position in the
-- order in which the items were rejected; the plan applies the other filters to the rows it has read.

-- name: new_rejects :table
execution_id id, step integer, item text, id id, tenant text, pipeline text, step_name text, fingerprint text, error_class text,
envelope text, payload text, type integer

-- name: insert_rejects :rows
INSERT INTO windlass_reject (execution_id, step, item, id, tenant, pipeline, step_name, fingerprint, error_class, envelope, payload,
    type, at)
SELECT execution_id, step, item, id, tenant, pipeline, step_name, fingerprint, error_class, envelope, payload, type, {now}
FROM {new_rejects} n WHERE true ON CONFLICT (execution_id, step, item) DO NOTHING RETURNING id

-- name: older_rejects :fragment
AND (at, id) < (:at, :id) ORDER BY at DESC, id DESC LIMIT {window}

-- name: newer_rejects :fragment
AND (at, id) > (:at, :id) ORDER BY at, id LIMIT {window}

-- name: reject_facts :fragment
SELECT id, at, tenant, pipeline, step_name, fingerprint, error_class, execution_id, redriven_as FROM windlass_reject

-- name: older_rejects_of_any :rows
{reject_facts} WHERE true {older_rejects}

-- name: older_rejects_of_fingerprint :rows
{reject_facts} WHERE fingerprint = :value {older_rejects}

-- name: older_rejects_of_execution :rows
{reject_facts} WHERE execution_id = :value {older_rejects}

-- name: older_rejects_of_step :rows
{reject_facts} WHERE pipeline = :value AND step_name = :step {older_rejects}

-- name: older_rejects_of_error_class :rows
{reject_facts} WHERE error_class = :value {older_rejects}

-- name: older_rejects_of_pipeline :rows
{reject_facts} WHERE pipeline = :value {older_rejects}

-- name: older_rejects_of_tenant :rows
{reject_facts} WHERE tenant = :value {older_rejects}

-- name: newer_rejects_of_any :rows
{reject_facts} WHERE true {newer_rejects}

-- name: newer_rejects_of_fingerprint :rows
{reject_facts} WHERE fingerprint = :value {newer_rejects}

-- name: newer_rejects_of_execution :rows
{reject_facts} WHERE execution_id = :value {newer_rejects}

-- name: newer_rejects_of_step :rows
{reject_facts} WHERE pipeline = :value AND step_name = :step {newer_rejects}

-- name: newer_rejects_of_error_class :rows
{reject_facts} WHERE error_class = :value {newer_rejects}

-- name: newer_rejects_of_pipeline :rows
{reject_facts} WHERE pipeline = :value {newer_rejects}

-- name: newer_rejects_of_tenant :rows
{reject_facts} WHERE tenant = :value {newer_rejects}

-- name: get_rejects :rows
SELECT r.id, r.execution_id, r.step, r.item, r.tenant, r.pipeline, r.step_name, r.fingerprint, r.error_class, r.envelope, r.payload,
    r.type, r.redriven_as, r.at
FROM windlass_reject r WHERE r.id {in_ids}

-- name: redriven_rejects :table
id id, redriven_as id

-- name: mark_redriven :count
UPDATE windlass_reject SET redriven_as = m.redriven_as FROM {redriven_rejects} m WHERE {windlass_reject.id = m.id}

-- name: old_rejects :rows
SELECT r.id, r.at FROM windlass_reject r WHERE r.at <= {now} - :older_than_us ORDER BY r.at, r.id LIMIT {window}

-- name: purge_rejects :count
DELETE FROM windlass_reject WHERE id {in_ids}
