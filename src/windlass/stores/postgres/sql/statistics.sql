-- Differs by need: each database has its own way to read a JSON text as a table, and its own name for the place of a row.

-- name: row_place :fragment
ctid

-- name: stat_rows :fragment
(SELECT (value->>0)::bigint AS minute, value->>1 AS queue, (value->>2)::bigint AS succeeded, (value->>3)::bigint AS failed,
    (value->>4)::bigint AS retried, (value->>5)::bigint AS runs, (value->>6)::bigint AS wait_us, (value->>7)::bigint AS run_us
    FROM json_array_elements(:rows::json))
