-- Differs by need: arrays as tables, which is where PostgreSQL's speed comes from, and its own way to read a JSON text as one.
-- Arrays come as text literals built by the dialect: the driver's own list adaptation costs more than the statement.

-- name: json_table :fragment
(SELECT {columns} FROM json_array_elements(:rows::json))

-- name: json_column :fragment
(value->>{place})::{type} AS {name}

-- name: array_table :fragment
(SELECT * FROM unnest({columns}) AS r({names}))

-- name: array_column :fragment
:{name}::{type}[]

-- name: id :fragment
uuid

-- name: text :fragment
text

-- name: integer :fragment
bigint

-- name: real :fragment
double precision

-- name: ids :fragment
(SELECT unnest(:ids::uuid[]) AS id)

-- name: in_ids :fragment
= ANY(:ids::uuid[])

-- name: in_names :fragment
= ANY(:names::text[])

-- name: names :fragment
(SELECT unnest(:names::text[]) AS id)

-- name: new_jobs :arrays
{new_job_types}

-- name: keys :arrays
word text, id id

-- name: gate_rows :arrays
name text, change integer, taken text

-- name: key_names :fragment
(SELECT * FROM unnest(:names::text[], :generals::text[]) AS k(name, general))

-- name: each_held :fragment
json_array_elements_text(CASE WHEN h.holds ~ '^\["[^"\\]+"(,"[^"\\]+")*\]$' THEN h.holds ELSE '[]' END::json) AS e(value)

-- name: row_place :fragment
ctid
