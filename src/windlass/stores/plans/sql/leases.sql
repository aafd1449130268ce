-- Named leases. Free: held by nobody, past its time, or held by a node that is lost or gone.

-- name: live_holder :fragment
EXISTS (SELECT 1 FROM windlass_node n WHERE n.id = windlass_lease.holder AND n.state = 'alive')

-- name: look_at_lease :row
SELECT {now}, since, passed_at, fence, CASE WHEN {live_holder} THEN until ELSE 0 END FROM windlass_lease WHERE name = :name

-- name: found_lease :count
INSERT INTO windlass_lease (name, holder, fence, until, since) VALUES (:name, NULL, 0, 0, {now}) ON CONFLICT (name) DO NOTHING

-- Only for a node that lives itself: one that was given up must not take up new duties before it has noticed.
-- name: take_lease :count
UPDATE windlass_lease SET holder = :holder, fence = fence + 1, until = {now} + :lease_us
WHERE name = :name AND fence = :fence AND (holder = :holder OR until < {now} OR NOT {live_holder})
    AND EXISTS (SELECT 1 FROM windlass_node me WHERE me.id = :holder AND me.state = 'alive')

-- name: renew_lease :count
UPDATE windlass_lease SET until = {now} + :lease_us WHERE name = :name AND holder = :holder AND fence = :fence

-- Raises the fence as well: whoever looked before this must look again, since the duty may not be due any more.
-- name: give_back_lease :count
UPDATE windlass_lease SET holder = NULL, until = 0, fence = fence + 1, passed_at = CASE WHEN :passed = 1 THEN {now} ELSE passed_at END
WHERE name = :name AND holder = :holder AND fence = :fence

-- name: release_abandoned_leases :count
UPDATE windlass_lease SET holder = NULL, until = 0 WHERE holder IS NOT NULL AND NOT {live_holder}

-- A duty is not late before there was somebody to do it.
-- name: last_pass :row
SELECT {now}, passed_at, (SELECT min(n.started_at) FROM windlass_node n WHERE n.state = 'alive' AND n.lease_until >= {now})
FROM windlass_lease WHERE name = :name
