-- Differs by need: entries of jobs that have ended stay in the index as long as some transaction may see them, so each level is read
-- starting at a given position; and for a generic plan the planner would build a bitmap of a queue with a million jobs to count 10,000.

-- The number of index entries read, including those of dead rows, is the difference of two counters: PostgreSQL executes the parts of a
-- UNION ALL in order. The counter cannot be reset in between: statistics are sent only between transactions.
-- name: heads :rows
SELECT NULL AS queue, -2 AS level, NULL::bigint AS due, 0 AS flag, NULL::uuid AS id, {walked}
UNION ALL
SELECT q.name, l.level, f.due, CASE WHEN {is_limited} THEN 1 ELSE 0 END, f.id, 0
FROM windlass_queue q CROSS JOIN {levels} l LEFT JOIN LATERAL (
    SELECT h.due, h.id FROM windlass_hot h
    WHERE h.queue = q.name AND h.priority = l.level AND h.status = 'PENDING' AND h.lane IS NULL AND h.due IS NOT NULL
        AND (h.due, h.id) >= (
            coalesce((:starts::jsonb -> (q.name || ' ' || l.level) ->> 0)::bigint, -9223372036854775808),
            coalesce((:starts::jsonb -> (q.name || ' ' || l.level) ->> 1)::uuid, '00000000-0000-0000-0000-000000000000')
        )
    ORDER BY h.due, h.id LIMIT 1
) f ON true
WHERE q.paused = 0
UNION ALL
SELECT NULL, NULL, {now}, CASE WHEN (
        SELECT h.lane FROM windlass_hot h WHERE h.status = 'PENDING' AND h.lane IS NOT NULL AND h.due IS NOT NULL
        ORDER BY h.queue, h.lane LIMIT 1
    ) IS NULL THEN 0 ELSE 1 END, NULL, {walked}
UNION ALL
SELECT g.name, -1, g.opens_at, 0, NULL, 0 FROM windlass_gate g WHERE g.name >= 'circuit:' AND g.name < 'circuit;' AND g.opens_at > {now}

-- name: walked :fragment
pg_stat_get_xact_tuples_returned('windlass_hot_due'::regclass)

-- name: walk_indexes :row
SELECT set_config('enable_bitmapscan', 'off', true)
