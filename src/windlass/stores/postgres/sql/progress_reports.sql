-- Differs by need: each database has its own way to read a JSON text as a table.

-- name: progress_rows :fragment
(SELECT (value->>0)::uuid AS id, (value->>1)::bigint AS fence, (value->>2)::double precision AS done,
    (value->>3)::double precision AS total, value->>4 AS message, (value->>5)::bigint AS at
    FROM json_array_elements(:rows::json))

-- name: line_rows :fragment
(SELECT (value->>0)::uuid AS id, (value->>1)::bigint AS fence, (value->>2)::int AS number, (value->>3)::int AS attempt,
    (value->>4)::bigint AS at, (value->>5)::smallint AS level, value->>6 AS logger, value->>7 AS line
    FROM json_array_elements(:rows::json))
