-- Differs by need: each database has its own way to read a JSON text as a table.

-- name: progress_rows :fragment
(SELECT json_extract(value, '$[0]') AS id, json_extract(value, '$[1]') AS fence, json_extract(value, '$[2]') AS done,
    json_extract(value, '$[3]') AS total, json_extract(value, '$[4]') AS message, json_extract(value, '$[5]') AS at
    FROM json_each(:rows))

-- name: line_rows :fragment
(SELECT json_extract(value, '$[0]') AS id, json_extract(value, '$[1]') AS fence, json_extract(value, '$[2]') AS number,
    json_extract(value, '$[3]') AS attempt, json_extract(value, '$[4]') AS at, json_extract(value, '$[5]') AS level,
    json_extract(value, '$[6]') AS logger, json_extract(value, '$[7]') AS line
    FROM json_each(:rows))
