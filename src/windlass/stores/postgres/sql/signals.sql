-- Differs by need: several nodes search for overdue waits at the same time, and each takes different ones.

-- name: expire_waits :rows
WITH overdue AS MATERIALIZED (
    SELECT id FROM windlass_hot WHERE status = 'WAITING' AND due IS NOT NULL AND due <= {now}
    ORDER BY due, id LIMIT {most} FOR UPDATE SKIP LOCKED
)
UPDATE windlass_hot SET status = 'PENDING', fence = {next_fence} WHERE id = ANY(ARRAY(SELECT id FROM overdue)) AND status = 'WAITING'
RETURNING queue, priority
