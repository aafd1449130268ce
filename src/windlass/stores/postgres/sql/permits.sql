-- Differs by need: gates are locked, in the order of their names, before anything is decided about them.

-- The time is read in the outer query: in the inner one it would be the time before the wait for the lock.
-- name: lock_gates :rows
SELECT l.*, {moment} FROM (
    SELECT g.name, g.cap, g.in_use, g.rate, g.per_us, g.opens_at, g.taken, g.retry_us
    FROM windlass_gate g WHERE g.name {in_names} AND {counted_gate} ORDER BY g.name FOR UPDATE
) l

-- name: lock_key_gates :rows
SELECT name FROM windlass_gate WHERE name > :first AND name < :beyond ORDER BY name FOR UPDATE

-- name: lock_circuits :rows
SELECT l.*, {moment} FROM (
    SELECT name, circuit FROM windlass_gate WHERE name {in_names} ORDER BY name FOR UPDATE
) l

-- name: lock_holder :rows
SELECT id, fence, node, holds FROM windlass_hot WHERE id = :job_id AND fence = :fence AND holds IS NOT NULL FOR UPDATE
