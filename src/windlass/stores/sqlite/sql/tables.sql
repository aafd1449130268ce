-- Differs by need: each database has its own function to read a JSON text as a table. One statement for many rows matters even inside
-- one process: Python releases the GIL at every statement, and a busy event loop delays getting it back.

-- name: json_table :fragment
(SELECT {columns} FROM json_each(:rows))

-- name: json_column :fragment
json_extract(value, '$[{position}]') AS {name}

-- name: bulk_form :fragment
json

-- name: id :fragment
text

-- name: text :fragment
text

-- name: integer :fragment
integer

-- name: real :fragment
real

-- The transitions of a flush, in a table of the connection that writes them.
-- name: staged :fragment
temp.windlass_staged

-- name: create_staged :count
CREATE TEMP TABLE IF NOT EXISTS windlass_staged (
    id text, fence integer, status text, outcome text, number integer, attempts integer, started_at integer, ended_at integer,
    wait_us integer, result text, error text, error_class text, traceback text, reason text
)

-- name: ids :fragment
(SELECT value AS id FROM json_each(:ids))

-- name: in_ids :fragment
IN (SELECT value FROM json_each(:ids))

-- name: in_names :fragment
IN (SELECT value FROM json_each(:names))

-- name: names :fragment
(SELECT value AS id FROM json_each(:names))

-- name: key_names :fragment
(SELECT names.value AS name, generals.value AS general
    FROM json_each(:names) AS names JOIN json_each(:generals) AS generals ON generals.key = names.key)

-- name: each_held :fragment
json_each(CASE json_valid(h.holds) WHEN 1 THEN CASE json_type(h.holds) WHEN 'array' THEN h.holds ELSE '[]' END ELSE '[]' END) AS e

-- name: row_id :fragment
rowid

-- Nothing: there is one writer.
-- name: lock_h :fragment

-- name: lock_d :fragment

-- name: lock_s :fragment

-- name: skip_locked_h :fragment

-- name: lookup :fragment
{column} = {value}

-- Rows whose id is no text, or none that is UTF-8: the driver passes both as bytes, which never equal a text.
-- name: pause_nameless :count
UPDATE windlass_hot SET status = 'PAUSED', paused_from = 'PENDING', fence = {next_fence}
WHERE id IN (:id, CAST(:id AS text)) AND status = 'PENDING'
