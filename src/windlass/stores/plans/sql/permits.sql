-- Gates and permits. A gate's row counts the permits in use and is locked before a claim. A row of windlass_freed counts released permits
-- that are not yet subtracted from the gate's count.

-- name: gate_rows :table
name text, change integer, taken text

-- name: counted_gate :fragment
(g.cap IS NOT NULL OR g.rate IS NOT NULL OR g.opens_at IS NOT NULL)

-- name: lock_gates :rows
SELECT g.name, g.cap, g.in_use, g.rate, g.per_us, g.opens_at, g.taken, g.retry_us, {now}
FROM windlass_gate g WHERE g.name {in_names} AND {counted_gate} ORDER BY g.name

-- name: take_freed :rows
DELETE FROM windlass_freed WHERE gate {in_names} RETURNING gate, places

-- name: write_gates :count
UPDATE windlass_gate SET in_use = windlass_gate.in_use + i.change, taken = i.taken, used_at = {now}
FROM {gate_rows} i WHERE windlass_gate.name = i.name

-- name: read_gates :rows
SELECT g.name, g.cap, g.in_use - coalesce((SELECT CAST(sum(f.places) AS {integer}) FROM windlass_freed f WHERE f.gate = g.name), 0),
    g.rate, g.per_us, g.opens_at, g.taken, g.retry_us
FROM windlass_gate g WHERE g.name {in_names}

-- At first use, the gate of a key is copied from the gate of its resource, in a transaction that has locked the resource's gate.
-- name: make_key_gates :rows
INSERT INTO windlass_gate (name, cap, rate, per_us, retry_us, used_at)
SELECT i.name, g.cap, g.rate, g.per_us, g.retry_us, {now} FROM {key_names} i CROSS JOIN windlass_gate g WHERE g.name = i.general
ON CONFLICT (name) DO NOTHING
RETURNING name, cap, in_use, rate, per_us, opens_at, taken, retry_us

-- name: known_gates :rows
SELECT name FROM windlass_gate WHERE name {in_names}

-- name: list_gates :rows
SELECT g.name, g.cap, g.in_use - coalesce((SELECT CAST(sum(f.places) AS {integer}) FROM windlass_freed f WHERE f.gate = g.name), 0),
    g.rate, g.per_us, g.opens_at, g.taken, g.retry_us, g.circuit
FROM windlass_gate g WHERE g.name >= :first AND g.name < :beyond AND g.name > :after ORDER BY g.name LIMIT 200

-- name: set_gate :count
INSERT INTO windlass_gate (name, cap, rate, per_us, retry_us, used_at)
VALUES (:name, :cap, :rate, :per_us, :retry_us, {now})
ON CONFLICT (name) DO UPDATE SET cap = excluded.cap, rate = excluded.rate, per_us = excluded.per_us,
    retry_us = excluded.retry_us, taken = CASE WHEN windlass_gate.per_us = excluded.per_us THEN windlass_gate.taken END

-- name: lock_key_gates :rows
SELECT name FROM windlass_gate WHERE name > :first AND name < :beyond ORDER BY name

-- name: set_key_gates :count
UPDATE windlass_gate SET cap = :cap, rate = :rate, retry_us = :retry_us,
    taken = CASE WHEN per_us = :per_us THEN taken END, per_us = :per_us
WHERE name > :first AND name < :beyond

-- name: count_in_running :count
UPDATE windlass_hot
SET holds = CASE WHEN holds IS NULL THEN '[' || CAST(:entry AS text) || ']' ELSE substr(holds, 1, length(holds) - 1) || ',' || CAST(:entry AS text) || ']' END
WHERE queue = :queue AND status = 'RUNNING' AND node > '' AND (holds IS NULL OR holds NOT LIKE '%"queue:%')

-- name: count_more :count
UPDATE windlass_gate SET in_use = in_use + :change WHERE name = :name

-- Without gates there are no permits to release.
-- name: release_permits :count
INSERT INTO windlass_freed (gate, places)
SELECT e.value, sum(h.holders) FROM (
    SELECT r.holds, count(*) AS holders FROM {staged} t CROSS JOIN windlass_hot r
    WHERE r.id = t.id AND r.fence = t.fence AND EXISTS (SELECT 1 FROM windlass_gate) GROUP BY r.holds
) h CROSS JOIN {each_held} GROUP BY e.value

-- name: release_permit :count
INSERT INTO windlass_freed (gate, places)
SELECT e.value, 1 FROM windlass_hot h CROSS JOIN {each_held} WHERE h.id = :id AND h.fence = :fence AND h.holds IS NOT NULL

-- A body that still runs after the end of its job keeps its permits until it returns.
-- name: lock_holder :rows
SELECT id, fence, node, holds FROM windlass_hot WHERE id = :job_id AND fence = :fence AND holds IS NOT NULL

-- name: holders :rows
SELECT h.id, h.fence, h.node, h.holds FROM windlass_hot h
WHERE h.id {in_ids} AND {h_runs} AND h.holds IS NOT NULL

-- name: keep_permits :count
INSERT INTO windlass_permit (job_id, fence, node, holds) VALUES (:job_id, :fence, :node, :holds)

-- name: clear_permits :count
UPDATE windlass_hot SET holds = NULL WHERE id = :job_id AND fence = :fence

-- name: delete_kept_permits :rows
DELETE FROM windlass_permit WHERE job_id = :job_id AND fence = :fence RETURNING holds

-- name: kept_permits :rows
SELECT job_id, fence FROM windlass_permit WHERE node = :node

-- name: delete_abandoned_permits :rows
DELETE FROM windlass_permit WHERE node NOT IN (SELECT id FROM windlass_node WHERE state = 'alive') RETURNING holds

-- name: abandoned_permit :row
SELECT 1 FROM windlass_permit WHERE node NOT IN (SELECT id FROM windlass_node WHERE state = 'alive') LIMIT 1

-- name: insert_freed :count
INSERT INTO windlass_freed (gate, places) SELECT id, count(*) FROM {names} n GROUP BY id

-- name: idle_key_gates :rows
SELECT name FROM windlass_gate
WHERE name > 'resource:' AND name < 'resource;' AND name LIKE '%/%' AND used_at < {now} - :idle_us - coalesce(per_us, 0) * 21 / 20 ORDER BY name LIMIT 500

-- name: delete_idle_gates :count
DELETE FROM windlass_gate WHERE name {in_names} AND in_use = 0

-- name: lock_circuits :rows
SELECT name, circuit, {now} FROM windlass_gate WHERE name {in_names} ORDER BY name

-- name: read_circuits :rows
SELECT name, circuit FROM windlass_gate WHERE name {in_names}

-- name: make_circuit :count
INSERT INTO windlass_gate (name, retry_us, used_at) VALUES (:name, :retry_us, {now}) ON CONFLICT (name) DO NOTHING

-- name: write_circuit :count
UPDATE windlass_gate SET cap = :cap, opens_at = :opens_at, circuit = :circuit, used_at = {now} WHERE name = :name
