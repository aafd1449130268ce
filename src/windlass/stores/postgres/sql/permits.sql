-- Differs by need: gates are locked, in the order of their names, before anything is decided about them.

-- name: names :fragment
(SELECT unnest(:names::text[]) AS id)

-- name: gate_rows :fragment
(SELECT * FROM unnest(:gates::text[], :changes::int[], :takes::text[]) AS r(name, change, taken))

-- name: each_held :fragment
json_array_elements_text(CASE WHEN h.holds ~ '^\["[^"\\]+"(,"[^"\\]+")*\]$' THEN h.holds ELSE '[]' END::json) AS e(value)

-- The time is asked for outside: inside it would be that of before a wait for the lock.
-- name: lock_gates :rows
SELECT l.*, {moment} FROM (
    SELECT g.name, g.cap, g.in_use, g.rate, g.per_us, g.opens_at, g.taken, g.retry_us
    FROM windlass_gate g WHERE g.name = ANY(:names::text[]) AND {counted_gate} ORDER BY g.name FOR UPDATE
) l

-- name: key_names :fragment
(SELECT * FROM unnest(:names::text[], :generals::text[]) AS k(name, general))

-- name: lock_key_gates :rows
SELECT name FROM windlass_gate WHERE name > :first AND name < :beyond ORDER BY name FOR UPDATE

-- name: lock_circuits :rows
SELECT l.*, {moment} FROM (
    SELECT name, circuit FROM windlass_gate WHERE name = ANY(:names::text[]) ORDER BY name FOR UPDATE
) l

-- name: lock_holder :rows
SELECT id, fence, node, holds FROM windlass_hot WHERE id = :job_id AND fence = :fence AND holds IS NOT NULL FOR UPDATE
