-- Differs by need: each database has its own way to read a JSON text as a table. One statement for many rows matters even inside one
-- process: Python gives its lock away with every statement, and a busy event loop is slow to give it back.

-- name: ids :fragment
(SELECT value AS id FROM json_each(:ids))

-- name: keys :fragment
(SELECT json_extract(value, '$[0]') AS word, json_extract(value, '$[1]') AS id FROM json_each(:keys))

-- name: new_jobs :fragment
(SELECT json_extract(value, '$[0]') AS id, json_extract(value, '$[1]') AS queue, json_extract(value, '$[2]') AS target,
    json_extract(value, '$[3]') AS priority, json_extract(value, '$[4]') AS args, json_extract(value, '$[5]') AS due,
    json_extract(value, '$[6]') AS delay, json_extract(value, '$[7]') AS options, json_extract(value, '$[8]') AS tags,
    json_extract(value, '$[9]') AS params, json_extract(value, '$[10]') AS correlation_id,
    json_extract(value, '$[11]') AS idempotency_key, json_extract(value, '$[12]') AS business_key,
    json_extract(value, '$[13]') AS parent_id, json_extract(value, '$[14]') AS lane, json_extract(value, '$[15]') AS expires_at,
    json_extract(value, '$[16]') AS expires_us
    FROM json_each(:rows))

-- name: transitions :fragment
(SELECT json_extract(value, '$[0]') AS id, json_extract(value, '$[1]') AS fence, json_extract(value, '$[2]') AS status,
    json_extract(value, '$[3]') AS outcome, json_extract(value, '$[4]') AS number, json_extract(value, '$[5]') AS attempts,
    json_extract(value, '$[6]') AS started_at, json_extract(value, '$[7]') AS ended_at, json_extract(value, '$[8]') AS wait_us,
    json_extract(value, '$[9]') AS result, json_extract(value, '$[10]') AS error, json_extract(value, '$[11]') AS error_class,
    json_extract(value, '$[12]') AS traceback, json_extract(value, '$[13]') AS reason
    FROM json_each(:rows))

-- name: names :fragment
(SELECT value AS id FROM json_each(:names))

-- name: key_names :fragment
(SELECT names.value AS name, generals.value AS general
    FROM json_each(:names) AS names JOIN json_each(:generals) AS generals ON generals.key = names.key)

-- name: gate_rows :fragment
(SELECT json_extract(value, '$[0]') AS name, json_extract(value, '$[1]') AS change, json_extract(value, '$[2]') AS taken
    FROM json_each(:rows))

-- name: each_held :fragment
json_each(CASE json_valid(h.holds) WHEN 1 THEN CASE json_type(h.holds) WHEN 'array' THEN h.holds ELSE '[]' END ELSE '[]' END) AS e
