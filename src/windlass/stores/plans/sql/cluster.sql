-- Nodes, their leases, and the recovery of lost nodes. Only `lease_until` and the store's clock decide whether a node is alive.

-- name: insert_node :count
INSERT INTO windlass_node (id, host, pid, version, queues, origin, declares, started_at, heartbeat_at, lease_until, running, state)
VALUES (:id, :host, :pid, :version, :queues, :origin, :declares, {now}, {now}, {now} + :lease_us, 0, 'alive')

-- name: heartbeat :count
UPDATE windlass_node SET heartbeat_at = {now}, lease_until = {now} + :lease_us, running = :running, error = :error,
    lag = :lag
WHERE id = :id AND state = 'alive'

-- name: count_nodes :row
SELECT count(*) FROM windlass_node WHERE state = 'alive' AND lease_until >= {now} AND coalesce(queues, '*') <> ''

-- name: count_fresh_nodes :row
SELECT count(*) FROM windlass_node WHERE state = 'alive' AND lease_until >= {now} AND heartbeat_at > {now} - :age_us
    AND coalesce(queues, '*') <> ''

-- name: failing_nodes :rows
SELECT id, error FROM windlass_node WHERE state = 'alive' AND lease_until >= {now} AND error IS NOT NULL ORDER BY id LIMIT 10

-- name: node_lags :rows
SELECT lag FROM windlass_node WHERE state = 'alive' AND lease_until >= {now} AND lag IS NOT NULL

-- For a node that has drained while bodies of some jobs still run: it serves no queue and does not count as a worker.
-- name: serve_nothing :count
UPDATE windlass_node SET queues = '' WHERE id = :id

-- name: list_nodes :rows
SELECT id, host, pid, version, queues, started_at, heartbeat_at,
    CASE WHEN state = 'alive' AND lease_until >= {now} THEN 1 ELSE 0 END, running
FROM windlass_node ORDER BY started_at, id

-- name: request_drain :count
UPDATE windlass_node SET drain_asked = 1 WHERE id = :id AND state = 'alive' AND lease_until >= {now}

-- name: drain_requested :row
SELECT 1 FROM windlass_node WHERE id = :id AND drain_asked = 1

-- name: delete_node :count
DELETE FROM windlass_node WHERE id = :id

-- name: mark_lost :count
UPDATE windlass_node SET state = 'lost' WHERE state = 'alive' AND lease_until < {now} AND (
    CAST(:node AS text) IS NULL
    OR EXISTS (SELECT 1 FROM windlass_node me WHERE me.id = :node AND me.state = 'alive' AND me.lease_until >= {now})
)

-- name: lost_node :row
SELECT 1 FROM windlass_node WHERE state = 'lost' LIMIT 1

-- name: orphaned_nodes :rows
WITH RECURSIVE holder (node) AS (
    SELECT min(node) FROM windlass_hot WHERE status = 'RUNNING'
    UNION ALL
    SELECT (SELECT min(h.node) FROM windlass_hot h WHERE h.status = 'RUNNING' AND h.node > holder.node)
    FROM holder WHERE holder.node IS NOT NULL
)
SELECT node FROM holder
WHERE node IS NOT NULL AND NOT EXISTS (SELECT 1 FROM windlass_node n WHERE n.id = holder.node AND n.state = 'alive')

-- name: orphaned_jobs :rows
SELECT id, fence, crash_count FROM windlass_hot WHERE node = :node AND status = 'RUNNING' ORDER BY id LIMIT 200

-- name: recover_attempt :count
INSERT INTO windlass_attempt (job_id, fence, number, node, picked_at, ended_at, outcome, error_class, error)
SELECT h.id, h.fence, {next_attempt}, h.node, h.picked_at, {now}, 'lost', :error_class, :error
FROM windlass_hot h WHERE h.id = :id AND h.fence = :fence

-- name: recover_attempts :count
INSERT INTO windlass_attempt (job_id, fence, number, node, picked_at, ended_at, outcome, error)
SELECT h.id, h.fence, {next_attempt}, h.node, h.picked_at, {now}, 'lost', :error
FROM windlass_hot h WHERE h.id {in_ids} AND h.node = :node AND h.status = 'RUNNING'

-- name: release_permits_of_lost :count
INSERT INTO windlass_freed (gate, places)
SELECT e.value, count(*) FROM windlass_hot h CROSS JOIN {each_held}
WHERE h.id {in_ids} AND h.node = :node AND h.status = 'RUNNING' AND h.holds IS NOT NULL GROUP BY e.value

-- name: recover_hots :count
UPDATE windlass_hot SET status = 'PENDING', fence = {next_fence}, crash_count = CASE WHEN crash_count < 1000000 THEN crash_count + 1 ELSE crash_count END, node = NULL, picked_at = NULL,
    holds = NULL, expires = NULL
WHERE id {in_ids} AND node = :node AND status = 'RUNNING'

-- name: give_up_done :count
INSERT INTO windlass_done (id, queue, target, status, fence, attempts, crash_count, node, due, error, error_class, reason,
    picked_at, finished_at)
SELECT id, queue, target, 'FAILED', fence, attempts, CASE WHEN crash_count < 1000000 THEN crash_count + :crashes ELSE crash_count END, node, due, :error, :error_class, :reason, picked_at, {now}
FROM windlass_hot WHERE id = :id AND fence = :fence
ON CONFLICT (id) DO NOTHING

-- name: give_up_hot :count
DELETE FROM windlass_hot WHERE id = :id AND fence = :fence

-- name: forget_lost_nodes :rows
DELETE FROM windlass_node WHERE state = 'lost'
    AND NOT EXISTS (SELECT 1 FROM windlass_hot h WHERE h.node = windlass_node.id AND h.status = 'RUNNING')
RETURNING id
