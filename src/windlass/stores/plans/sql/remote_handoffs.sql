-- Hand-offs to subscribers outside of the database, read and settled by the relay under the lease of their destination.

-- name: next_remote_due :row
SELECT h.due - {now} FROM windlass_handoff h
WHERE h.publication = :publication AND h.subscriber = :subscriber AND h.status = 'WAITING' AND {subscription_open}
ORDER BY h.due, h.id LIMIT 1

-- name: subscription_open :fragment
NOT EXISTS (
    SELECT 1 FROM windlass_subscription s
    WHERE s.publication = :publication AND s.subscriber = :subscriber AND s.paused <> 0
)

-- name: due_remote_handoffs :rows
SELECT h.id, h.publication, h.key, h.tenant, h.correlation_id, h.payload, h.attempts, h.created_at FROM windlass_handoff h
WHERE h.publication = :publication AND h.subscriber = :subscriber AND h.status = 'WAITING' AND h.due <= {now} AND {subscription_open}
ORDER BY h.due, h.id LIMIT {most}

-- name: latest_due_remote_handoffs :rows
SELECT h.id, h.publication, h.key, h.tenant, h.correlation_id, h.payload, h.attempts, h.created_at FROM windlass_handoff h
WHERE h.publication = :publication AND h.subscriber = :subscriber AND h.status = 'WAITING' AND h.due <= {now} AND {subscription_open}
ORDER BY h.due DESC, h.id DESC LIMIT {most}

-- name: admit_remote_handoffs :rows
UPDATE windlass_handoff
SET status = 'ADMITTED', payload = NULL, due = NULL, reason = NULL, settled_at = {now}
FROM {settled_deliveries} r
WHERE {windlass_handoff.id = r.id} AND windlass_handoff.attempts = r.attempts AND {still_waits}
RETURNING settled_at - created_at

-- name: postpone_remote_handoffs :count
UPDATE windlass_handoff SET attempts = r.attempts + 1, due = {now} + r.delay_us, reason = r.reason
FROM {settled_deliveries} r
WHERE {windlass_handoff.id = r.id} AND windlass_handoff.attempts = r.attempts AND {still_waits}

-- Keeps the payload: a hand-off that was refused, e.g. because of a wrong password, can be retried once the cause is fixed.
-- name: refuse_remote_handoffs :count
UPDATE windlass_handoff
SET status = 'REJECTED', attempts = r.attempts + 1, due = NULL, seen_key = NULL, reason = r.reason, settled_at = {now}
FROM {settled_deliveries} r
WHERE {windlass_handoff.id = r.id} AND windlass_handoff.attempts = r.attempts AND {still_waits}

-- Only hand-offs whose key no other hand-off has taken since.
-- name: revive_handoffs :rows
UPDATE windlass_handoff SET status = 'WAITING', due = {now}, seen_key = key, settled_at = NULL
WHERE id {in_ids} AND status = 'REJECTED' AND payload IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM windlass_handoff o
    WHERE o.publication = windlass_handoff.publication AND o.subscriber = windlass_handoff.subscriber
        AND o.tenant = windlass_handoff.tenant AND o.seen_key = windlass_handoff.key AND o.seen_key IS NOT NULL
)
RETURNING publication, subscriber
