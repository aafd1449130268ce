-- Differs by need: a holder that hangs in the middle of a batch keeps its row locked, and other nodes must not wait for it.

-- name: take_lease :count
UPDATE windlass_lease SET holder = :holder, fence = fence + 1, until = {now} + :lease_us
WHERE name = (
    SELECT name FROM windlass_lease
    WHERE name = :name AND fence = :fence AND (holder = :holder OR until < {now} OR NOT {live_holder})
        AND EXISTS (SELECT 1 FROM windlass_node me WHERE me.id = :holder AND me.state = 'alive')
    FOR UPDATE SKIP LOCKED
)
