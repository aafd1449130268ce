-- Queues, and the head of each priority level: the first job that a claim would return, and the next due time.

-- name: levels :fragment
(
    SELECT 0 AS level UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4
    UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9
)

-- name: insert_queue :count
INSERT INTO windlass_queue (name) VALUES (:name) ON CONFLICT (name) DO NOTHING

-- Whether lanes have jobs is read from the head of their index: with EXISTS, PostgreSQL might scan the table for one.
-- name: heads :rows
SELECT q.name, l.level, (
        SELECT h.due FROM windlass_hot h
        WHERE h.queue = q.name AND h.priority = l.level AND h.status = 'PENDING' AND h.lane IS NULL AND h.due IS NOT NULL
        ORDER BY h.due, h.id LIMIT 1
    ), CASE WHEN {is_limited} THEN 1 ELSE 0 END
FROM windlass_queue q CROSS JOIN {levels} l WHERE q.paused = 0
UNION ALL
SELECT NULL, NULL, {now}, CASE WHEN (
        SELECT h.lane FROM windlass_hot h WHERE h.status = 'PENDING' AND h.lane IS NOT NULL AND h.due IS NOT NULL
        ORDER BY h.queue, h.lane LIMIT 1
    ) IS NULL THEN 0 ELSE 1 END
UNION ALL
SELECT g.name, -1, g.opens_at, 0 FROM windlass_gate g WHERE g.name >= 'circuit:' AND g.name < 'circuit;' AND g.opens_at > {now}

-- name: is_limited :fragment
EXISTS (SELECT 1 FROM windlass_gate g WHERE g.name = 'queue:' || q.name AND (g.cap IS NOT NULL OR g.rate IS NOT NULL))

-- What a claim has to know before it reads: the time, whether its node is alive, and the queues with a limit, in a row each.
-- name: claim_state :rows
SELECT {now}, (SELECT count(*) FROM windlass_node WHERE id = :node AND state = 'alive'), q.name
FROM (SELECT 1 AS always) s LEFT JOIN windlass_queue q ON {is_limited}

-- name: next_lane :row
SELECT queue, lane FROM (
    SELECT queue, lane FROM windlass_hot
    WHERE status = 'PENDING' AND lane IS NOT NULL AND due IS NOT NULL AND queue = :queue AND lane > :lane
    ORDER BY lane LIMIT 1
) same_queue
UNION ALL
SELECT queue, lane FROM (
    SELECT queue, lane FROM windlass_hot
    WHERE status = 'PENDING' AND lane IS NOT NULL AND due IS NOT NULL AND queue > :queue
    ORDER BY queue, lane LIMIT 1
) next_queue
LIMIT 1

-- name: lane_dues :rows
SELECT l.level, (
        SELECT h.due FROM windlass_hot h
        WHERE h.queue = :queue AND h.lane = :lane AND h.priority = l.level AND h.status = 'PENDING' AND h.lane IS NOT NULL
            AND h.due IS NOT NULL
        ORDER BY h.due, h.id LIMIT 1
    )
FROM {levels} l

-- name: list_queues :rows
SELECT name, paused FROM windlass_queue ORDER BY name

-- Runs before queue_depths, and may configure the planner: it might collect all waiting jobs of a queue before it counts to the limit.
-- name: walk_indexes :row
SELECT 1

-- All queues at once, each with its limit. Waiting jobs of a queue are counted up to 10,000; its head is the first of its levels and
-- lanes.
-- name: queue_depths :rows
SELECT q.name, q.paused, (
        SELECT count(*) FROM (
            SELECT 1 FROM (
                SELECT 1 FROM windlass_hot h
                WHERE h.queue = q.name AND h.status = 'PENDING' AND h.lane IS NULL AND h.due IS NOT NULL LIMIT 10000
            ) plain
            UNION ALL
            SELECT 1 FROM (
                SELECT 1 FROM windlass_hot h
                WHERE h.queue = q.name AND h.status = 'PENDING' AND h.lane IS NOT NULL AND h.due IS NOT NULL LIMIT 10000
            ) in_lanes
            LIMIT 10000
        ) waiting
    ), (
        SELECT min(heads.due) FROM (
            SELECT (
                SELECT h.due FROM windlass_hot h
                WHERE h.queue = q.name AND h.priority = l.level AND h.status = 'PENDING' AND h.lane IS NULL
                    AND h.due IS NOT NULL
                ORDER BY h.due, h.id LIMIT 1
            ) AS due
            FROM {levels} l
            UNION ALL
            SELECT min(in_lanes.due) FROM (
                SELECT h.due FROM windlass_hot h
                WHERE h.queue = q.name AND h.status = 'PENDING' AND h.lane IS NOT NULL AND h.due IS NOT NULL LIMIT 10000
            ) in_lanes
        ) heads
    ), g.cap, g.rate, g.per_us
FROM windlass_queue q LEFT JOIN windlass_gate g ON g.name = 'queue:' || q.name
ORDER BY q.name

-- name: running_by_queue :rows
SELECT queue, count(*) FROM windlass_hot WHERE status = 'RUNNING' AND node > '' GROUP BY queue

-- name: target_lanes :rows
SELECT queue, lane, CASE WHEN unknown_since <= {now} - :waited_us THEN 1 ELSE 0 END
FROM windlass_lane ORDER BY queue, lane

-- name: mark_lane_known :count
UPDATE windlass_lane SET unknown_since = {now} WHERE queue = :queue AND lane = :lane

-- name: reset_unknown_since :count
UPDATE windlass_lane SET unknown_since = {now}

-- name: unknown_targets :rows
SELECT h.id, h.fence, h.target FROM windlass_hot h
WHERE h.queue = :queue AND h.lane = :lane AND h.priority = :level AND h.status = 'PENDING' AND h.lane IS NOT NULL
    AND h.due <= {now} - :waited_us
ORDER BY h.due, h.id LIMIT 200

-- name: lock_lane :count
UPDATE windlass_lane SET created_at = created_at WHERE queue = :queue AND lane = :lane

-- One condition per status: each status has its own index, and no index is on lanes alone.
-- name: delete_empty_lane :count
DELETE FROM windlass_lane WHERE queue = :queue AND lane = :lane AND created_at < {now} - 60000000
    AND NOT EXISTS (
        SELECT 1 FROM windlass_hot h
        WHERE h.queue = :queue AND h.lane = :lane AND h.status = 'PENDING' AND h.lane IS NOT NULL AND h.due IS NOT NULL
    )
    AND NOT EXISTS (
        SELECT 1 FROM windlass_hot h WHERE h.queue = :queue AND h.lane = :lane AND h.status = 'RUNNING' AND h.node > ''
    )
    AND NOT EXISTS (
        SELECT 1 FROM windlass_hot h WHERE h.queue = :queue AND h.lane = :lane AND h.status IN ('PAUSED', 'WAITING')
    )

-- name: store_now :row
SELECT {now}
