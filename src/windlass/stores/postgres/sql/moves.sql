-- Differs by need: there are concurrent writers, so rows are locked before they are read. Nodes are notified by the same commit.

-- name: notify :count
SELECT pg_notify(:channel, :payload)

-- name: lock_live :rows
SELECT h.id, h.status, h.queue, h.priority, h.target, j.correlation_id, {j_in_flow}
FROM windlass_hot h JOIN windlass_job j ON {j.id = h.id}
WHERE h.id {in_ids} ORDER BY h.id FOR UPDATE OF h

-- name: lock_ended :rows
SELECT d.id, d.status, d.queue, j.priority, d.target, j.correlation_id, {j_in_flow}, j.business_key, {d_unsignaled}
FROM windlass_done d JOIN windlass_job j ON {j.id = d.id}
WHERE d.id {in_ids} AND d.status IN ('FAILED', 'PAUSED') ORDER BY d.id FOR UPDATE OF d

-- name: lock_expired :rows
WITH expired AS MATERIALIZED (
    SELECT id, status, queue, priority, target FROM windlass_hot
    WHERE expires IS NOT NULL AND status <> 'RUNNING' AND status IN ('PENDING', 'PAUSED', 'WAITING') AND expires <= {now}
    ORDER BY expires, id LIMIT :most FOR UPDATE SKIP LOCKED
)
SELECT e.id, e.status, e.queue, e.priority, e.target, j.correlation_id, {j_in_flow} FROM expired e JOIN windlass_job j ON {j.id = e.id}
