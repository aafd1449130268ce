-- Schedules and their ticks. A tick is fired by the transaction that writes the next one, and `next_at` only grows.

-- name: schedule_rows :table
id id, key text, origin text, state text, was text, cron text, zone text, anchor integer, starts integer, ends integer,
jitter_us integer, misfire text, catch_up integer, overlap text, call text, definition text, next_at integer, last_at integer,
skipped integer, changed_at integer

-- name: ticks :table
schedule_id id, tick integer, job_id id

-- name: advances :table
id id, next_at integer, last_at integer, skipped integer

-- ---------------------------------------------------------------------- firing

-- name: next_tick :row
SELECT s.next_at, {now} FROM windlass_schedule s
WHERE s.state = 'active' AND s.next_at IS NOT NULL AND NOT s.id {in_ids} ORDER BY s.next_at, s.id LIMIT 1

-- name: due_schedules :rows
SELECT {h.schedule_columns}, {now} FROM windlass_schedule h
WHERE h.state = 'active' AND h.next_at IS NOT NULL AND h.next_at <= {now} AND NOT h.id {in_ids}
ORDER BY h.next_at, h.id LIMIT {most} {skip_locked_h}

-- name: live_runs :rows
SELECT t.schedule_id, count(*) FROM windlass_tick t
WHERE t.schedule_id {in_ids} AND (SELECT h.id FROM windlass_hot h WHERE h.id = t.job_id) IS NOT NULL GROUP BY t.schedule_id

-- name: insert_ticks :rows
INSERT INTO windlass_tick (schedule_id, tick, job_id) SELECT schedule_id, tick, job_id FROM {ticks} t WHERE true
ON CONFLICT (schedule_id, tick) DO NOTHING RETURNING job_id

-- name: advance_schedules :count
UPDATE windlass_schedule SET next_at = i.next_at, last_at = coalesce(i.last_at, windlass_schedule.last_at),
    skipped = windlass_schedule.skipped + i.skipped, state = CASE WHEN i.next_at IS NULL THEN 'ended' ELSE 'active' END
FROM {advances} i WHERE {windlass_schedule.id = i.id}

-- ---------------------------------------------------------------------- declaring

-- Plans that store, retire or remove schedules lock this row, so that only one transaction at a time checks and writes keys.
-- name: lock_schedule_writes :row
SELECT h.name FROM windlass_lease h WHERE h.name = :name {lock_h}

-- Shows the upkeep duty that schedules were written: a node may have started and stopped between two of its passes.
-- name: mark_schedule_writes :count
UPDATE windlass_lease SET fence = fence + 1 WHERE name = :name

-- name: insert_declared :count
INSERT INTO windlass_declared (digest, key, written_at) SELECT :digest, n.id, {now} FROM {names} n WHERE true
ON CONFLICT (digest, key) DO UPDATE SET written_at = excluded.written_at

-- name: schedule_definitions :rows
SELECT key, definition, state, origin FROM windlass_schedule WHERE key {in_names}

-- name: lock_schedules :rows
SELECT {h.schedule_columns} FROM windlass_schedule h WHERE h.key {in_names} ORDER BY h.key {lock_h}

-- name: write_schedules :count
INSERT INTO windlass_schedule ({schedule_columns}) SELECT {schedule_columns} FROM {schedule_rows} s WHERE true
ON CONFLICT (id) DO UPDATE SET origin = excluded.origin, state = excluded.state, was = excluded.was, cron = excluded.cron,
    zone = excluded.zone, anchor = excluded.anchor, starts = excluded.starts, ends = excluded.ends, jitter_us = excluded.jitter_us,
    misfire = excluded.misfire, catch_up = excluded.catch_up, overlap = excluded.overlap, call = excluded.call,
    definition = excluded.definition, next_at = excluded.next_at, changed_at = excluded.changed_at

-- name: insert_schedule_keys :count
INSERT INTO windlass_live_key (business_key, holder_id, holder_kind) SELECT key, id, 'schedule' FROM {keys} k WHERE true
ON CONFLICT (business_key) DO NOTHING

-- ---------------------------------------------------------------------- steering

-- name: list_schedules :rows
SELECT {schedule_columns} FROM windlass_schedule WHERE key > :after AND state <> 'retired' ORDER BY key LIMIT {most}

-- name: set_schedule_state :count
UPDATE windlass_schedule SET state = :state, next_at = :next_at, changed_at = {now} WHERE id = :id

-- name: declaring_node :row
SELECT n.id FROM windlass_node n JOIN windlass_declared d ON d.digest = n.declares
WHERE coalesce(n.origin, '') = :origin AND n.state = 'alive' AND n.lease_until >= {now} AND d.key = :key LIMIT 1

-- name: delete_schedule :count
DELETE FROM windlass_schedule WHERE id = :id

-- ---------------------------------------------------------------------- upkeep

-- name: any_schedule :row
SELECT 1 FROM windlass_schedule WHERE key > '' LIMIT 1

-- name: live_declarations :rows
SELECT origin, declares, CASE WHEN min(started_at) <= {now} - :after_us THEN 1 ELSE 0 END,
    (SELECT l.fence FROM windlass_lease l WHERE l.name = :writes)
FROM windlass_node
WHERE state = 'alive' AND lease_until >= {now} AND origin IS NOT NULL GROUP BY origin, declares ORDER BY origin, declares

-- name: undeclared_schedules :rows
SELECT s.id, s.key FROM windlass_schedule s
WHERE s.origin = :origin AND s.state <> 'retired' AND NOT EXISTS (
    SELECT 1 FROM windlass_node n JOIN windlass_declared d ON d.digest = n.declares
    WHERE n.origin = :origin AND n.state = 'alive' AND n.lease_until >= {now} AND d.key = s.key
) ORDER BY s.key LIMIT {most}

-- name: retire_schedules :count
UPDATE windlass_schedule SET was = state, state = 'retired', changed_at = {now} WHERE id {in_ids}

-- Ticks of manual triggers are negative: they are deleted as soon as their runs have ended.
-- name: forget_ticks :count
DELETE FROM windlass_tick WHERE (schedule_id, tick) IN (
    SELECT t.schedule_id, t.tick FROM windlass_tick t
    WHERE t.tick > -144115188075855872 AND t.tick < {now} - :age_us AND (SELECT h.id FROM windlass_hot h WHERE h.id = t.job_id) IS NULL
    ORDER BY t.tick LIMIT {most}
)

-- name: delete_retired :count
DELETE FROM windlass_schedule WHERE state = 'retired' AND changed_at < {now} - :age_us

-- name: delete_declared :count
DELETE FROM windlass_declared WHERE written_at < {now} - :age_us
    AND NOT EXISTS (SELECT 1 FROM windlass_node n WHERE n.declares = windlass_declared.digest)

-- name: zoned_schedules :rows
SELECT {h.schedule_columns}, {now} FROM windlass_schedule h
WHERE h.key > :after AND h.state = 'active' AND h.zone <> 'UTC' AND h.next_at > {now} ORDER BY h.key LIMIT {most}

-- name: move_next_tick :count
UPDATE windlass_schedule SET next_at = :next_at WHERE id = :id AND state = 'active' AND next_at = :expected
