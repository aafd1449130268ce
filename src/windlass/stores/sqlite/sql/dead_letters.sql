-- Differs by need: each database has its own way to read a JSON text as a table.

-- name: words :fragment
(SELECT value AS word FROM json_each(:words))

-- name: deaths :fragment
(SELECT json_extract(value, '$[0]') AS fingerprint, json_extract(value, '$[1]') AS target, json_extract(value, '$[2]') AS error_class,
    json_extract(value, '$[3]') AS sample, json_extract(value, '$[4]') AS count, json_extract(value, '$[5]') AS first_job_id,
    json_extract(value, '$[6]') AS last_job_id, json_extract(value, '$[7]') AS alert_id
    FROM json_each(:deaths))

-- name: letters :fragment
(SELECT json_extract(value, '$[0]') AS id, json_extract(value, '$[1]') AS fingerprint, json_extract(value, '$[2]') AS target,
    json_extract(value, '$[3]') AS queue, json_extract(value, '$[4]') AS error_class, json_extract(value, '$[5]') AS reason,
    json_extract(value, '$[6]') AS envelope, json_extract(value, '$[7]') AS raised
    FROM json_each(:letters))
