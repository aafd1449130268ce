-- Differs by need: its own way to read a JSON text as a table; others work on these rows at the same time, so they are locked first.

-- name: archived_rows :fragment
(SELECT (value->>0)::uuid AS id, value->>1 AS queue, value->>2 AS target, value->>3 AS status, value->>4 AS business_key,
    (value->>5)::bigint AS created_at, (value->>6)::bigint AS finished_at, value->>7 AS job
    FROM json_array_elements(:rows::json))

-- name: lock_archivable :rows
SELECT d.id FROM {ids} i CROSS JOIN windlass_done d
WHERE d.id = i.id AND d.status <> 'PAUSED' AND d.finished_at <= {now} - :age_us ORDER BY d.id FOR UPDATE OF d SKIP LOCKED

-- name: lock_archived :rows
SELECT a.id, a.job FROM {ids} i CROSS JOIN windlass_archive a WHERE a.id = i.id AND a.status = 'FAILED' ORDER BY a.id FOR UPDATE OF a
