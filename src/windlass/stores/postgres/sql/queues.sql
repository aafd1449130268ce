-- Differs by need: for a generic plan the planner would build a bitmap of a queue with a million jobs to count 10,000 of them.

-- name: walk_indexes :row
SELECT set_config('enable_bitmapscan', 'off', true)
