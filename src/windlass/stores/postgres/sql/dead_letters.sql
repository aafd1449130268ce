-- Differs by need: its own way to read a JSON text as a table; others may bring archived jobs back, so they are locked first.

-- name: words :fragment
(SELECT json_array_elements_text(:words::json) AS word)

-- name: deaths :fragment
(SELECT value->>0 AS fingerprint, value->>1 AS target, value->>2 AS error_class, value->>3 AS sample, (value->>4)::int AS count,
    (value->>5)::uuid AS first_job_id, (value->>6)::uuid AS last_job_id, (value->>7)::uuid AS alert_id
    FROM json_array_elements(:deaths::json))

-- name: letters :fragment
(SELECT (value->>0)::uuid AS id, value->>1 AS fingerprint, value->>2 AS target, value->>3 AS queue, value->>4 AS error_class,
    value->>5 AS reason, value->>6 AS envelope, (value->>7)::smallint AS raised
    FROM json_array_elements(:letters::json))

-- name: forget_tags :count
DELETE FROM windlass_job_tag WHERE (tag, job_id) IN (SELECT * FROM unnest(:keys::text[], :ids::uuid[]))

-- name: lock_old_archived :rows
SELECT a.id, a.job FROM {ids} i CROSS JOIN windlass_archive a WHERE a.id = i.id AND a.status = 'FAILED' ORDER BY a.id FOR UPDATE OF a
