-- Differs by need: many keys of several columns are looked up by their unique index, whatever statistics say. In a join the planner may
-- read all entries of an index while statistics show few rows. And if another index that begins with the same columns has one level less
-- when the plan is made, the kept plan uses that one. So each lookup takes the next row of the unique index and compares its key.

-- name: find_executions_of_keys :rows
SELECT e.tenant, e.id, e.key, e.input_hash FROM {wanted_keys} w CROSS JOIN LATERAL (
    SELECT id, tenant, pipeline, pipeline_version, key, input_hash FROM windlass_execution
    WHERE (tenant, pipeline, pipeline_version, key) >= (w.tenant, w.pipeline, w.pipeline_version, w.key) AND key IS NOT NULL
    ORDER BY tenant, pipeline, pipeline_version, key LIMIT 1
) e
WHERE e.tenant = w.tenant AND e.pipeline = w.pipeline AND e.pipeline_version = w.pipeline_version AND e.key = w.key

-- name: holders_of_handoffs :rows
SELECT h.tenant, h.seen_key, h.payload_hash, h.execution_id FROM {wanted_handoffs} w CROSS JOIN LATERAL (
    SELECT publication, subscriber, tenant, seen_key, payload_hash, execution_id FROM windlass_handoff
    WHERE (publication, subscriber, tenant, seen_key) >= (:publication::text, :subscriber::text, w.tenant, w.key)
        AND seen_key IS NOT NULL
    ORDER BY publication, subscriber, tenant, seen_key LIMIT 1
) h
WHERE h.publication = :publication AND h.subscriber = :subscriber AND h.tenant = w.tenant AND h.seen_key = w.key
