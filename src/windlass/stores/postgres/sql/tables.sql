-- Differs by need: arrays as tables, which are fastest on PostgreSQL, and its own function to read a JSON text as a table.
-- Arrays are text literals that the dialect builds: the driver's adaptation of lists costs more than the statement.

-- name: json_table :fragment
(SELECT {columns} FROM json_array_elements(:rows::json))

-- name: json_column :fragment
(value->>{position})::{type} AS {name}

-- name: array_table :fragment
(SELECT * FROM unnest({columns}) AS r({names}))

-- name: array_column :fragment
:{name}::{type}[]

-- name: bulk_form :fragment
array

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
key text, id id

-- name: gate_rows :arrays
name text, change integer, taken text

-- name: key_names :fragment
(SELECT * FROM unnest(:names::text[], :generals::text[]) AS k(name, general))

-- name: each_held :fragment
json_array_elements_text(CASE WHEN h.holds ~ '^\["[^"\\]+"(,"[^"\\]+")*\]$' THEN h.holds ELSE '[]' END::json) AS e(value)

-- name: row_id :fragment
ctid

-- name: lock_h :fragment
FOR UPDATE OF h

-- name: lock_d :fragment
FOR UPDATE OF d

-- name: lock_s :fragment
FOR UPDATE OF s

-- name: skip_locked_h :fragment
FOR UPDATE OF h SKIP LOCKED

-- An array of one value: the planner can use neither a merge join nor a hash join for it, so it has to look rows up by the index. With a
-- plain equality it would read the whole index as soon as statistics say that the table is almost empty.
-- name: lookup :fragment
{column} = ANY(ARRAY[{value}])
