-- Differs by need: each database has its own way to read a JSON text as a table.

-- name: archived_rows :fragment
(SELECT json_extract(value, '$[0]') AS id, json_extract(value, '$[1]') AS queue, json_extract(value, '$[2]') AS target,
    json_extract(value, '$[3]') AS status, json_extract(value, '$[4]') AS business_key, json_extract(value, '$[5]') AS created_at,
    json_extract(value, '$[6]') AS finished_at, json_extract(value, '$[7]') AS job
    FROM json_each(:rows))
