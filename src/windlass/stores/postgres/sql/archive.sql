-- Differs by need: other transactions use these rows at the same time, so they are locked first.

-- name: lock_archivable :rows
SELECT d.id, {d_flow}, {f.flow_columns} FROM windlass_done d LEFT JOIN windlass_flow f ON {f.job_id = d.id}
WHERE d.id {in_ids} AND {d_is_old} ORDER BY d.id FOR UPDATE OF d SKIP LOCKED

-- name: lock_archived :rows
SELECT {archive_columns}, job FROM windlass_archive WHERE id {in_ids} AND status = 'FAILED' AND target <> 'windlass:batch' ORDER BY id FOR UPDATE

-- A flow has no row that could be locked, so this takes an advisory lock. Archiving or purging some of its jobs does not wait for the lock;
-- starting one over does.
-- name: try_lock_flows :rows
SELECT r.id FROM {ids} r WHERE pg_try_advisory_xact_lock(hashtextextended(r.id::text, 0))

-- name: lock_flows :count
SELECT pg_advisory_xact_lock(hashtextextended(r.id::text, 0)) FROM {ids} r
