-- Named leases. A lease is free if it has no holder, has expired, or its holder is a node that is lost or deleted.

-- name: live_holder :fragment
EXISTS (SELECT 1 FROM windlass_node n WHERE n.id = windlass_lease.holder AND n.state = 'alive')

-- name: read_lease :row
SELECT {now}, since, passed_at, fence, CASE WHEN {live_holder} THEN until ELSE 0 END FROM windlass_lease WHERE name = :name

-- name: create_lease :count
INSERT INTO windlass_lease (name, holder, fence, until, since) VALUES (:name, NULL, 0, 0, {now}) ON CONFLICT (name) DO NOTHING

-- Only for a live node: one that was marked as lost, and has not noticed it yet, must not take new leases.
-- name: take_lease :count
UPDATE windlass_lease SET holder = :holder, fence = fence + 1, until = {now} + :lease_us
WHERE name = :name AND fence = :fence AND (holder = :holder OR until < {now} OR NOT {live_holder})
    AND EXISTS (SELECT 1 FROM windlass_node me WHERE me.id = :holder AND me.state = 'alive')

-- name: renew_lease :count
UPDATE windlass_lease SET until = {now} + :lease_us WHERE name = :name AND holder = :holder AND fence = :fence

-- Raises the fence too: a node that read the lease before this must read it again, because the duty may no longer be due.
-- name: release_lease :count
UPDATE windlass_lease SET holder = NULL, until = 0, fence = fence + 1, passed_at = CASE WHEN :passed = 1 THEN {now} ELSE passed_at END
WHERE name = :name AND holder = :holder AND fence = :fence

-- name: release_abandoned_leases :count
UPDATE windlass_lease SET holder = NULL, until = 0 WHERE holder IS NOT NULL AND NOT {live_holder}

-- A duty is not late while there is no node that could do it.
-- name: last_pass :row
SELECT {now}, passed_at, (SELECT min(n.started_at) FROM windlass_node n WHERE n.state = 'alive' AND n.lease_until >= {now})
FROM windlass_lease WHERE name = :name
