-- Differs by need: with the average queue in mind the planner would build a bitmap of a queue a million deep, to count 10,000 of it.

-- name: walk_indexes :row
SELECT set_config('enable_bitmapscan', 'off', true)
