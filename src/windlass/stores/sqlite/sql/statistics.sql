-- Differs by need: each database has its own way to read a JSON text as a table, and its own name for the place of a row.

-- name: row_place :fragment
rowid

-- name: stat_rows :fragment
(SELECT json_extract(value, '$[0]') AS minute, json_extract(value, '$[1]') AS queue, json_extract(value, '$[2]') AS succeeded,
    json_extract(value, '$[3]') AS failed, json_extract(value, '$[4]') AS retried, json_extract(value, '$[5]') AS runs,
    json_extract(value, '$[6]') AS wait_us, json_extract(value, '$[7]') AS run_us
    FROM json_each(:rows))
