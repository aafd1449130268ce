-- Rows that were damaged by manual changes, by another program or by a disk.

-- name: pause_damaged :count
UPDATE windlass_hot SET status = 'PAUSED', paused_from = 'PENDING', fence = {next_fence}, node = NULL, picked_at = NULL, holds = NULL
WHERE id = :id AND fence = :fence

-- name: remove_orphan :count
DELETE FROM windlass_hot WHERE id = :id AND fence = :fence AND NOT EXISTS (SELECT 1 FROM windlass_job j WHERE j.id = windlass_hot.id)

-- A damaged fence that is the largest possible number cannot be raised: that would fail the whole statement. It is set to this limit
-- instead, and the job fails. The same happens to a fence that is not a number.
-- name: next_fence :fragment
CASE WHEN windlass_hot.fence < 4611686018427387904 THEN windlass_hot.fence + 1 ELSE 4611686018427387904 END

-- name: next_attempt :fragment
CASE WHEN h.attempts < 1000000 THEN h.attempts + 1 ELSE h.attempts END
