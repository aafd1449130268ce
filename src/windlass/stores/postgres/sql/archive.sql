-- Differs by need: others work on these rows at the same time, so they are locked first.

-- name: lock_archivable :rows
SELECT d.id FROM windlass_done d
WHERE d.id {in_ids} AND d.status <> 'PAUSED' AND d.finished_at <= {now} - :age_us ORDER BY d.id FOR UPDATE OF d SKIP LOCKED

-- name: lock_archived :rows
SELECT {archive_columns}, job FROM windlass_archive WHERE id {in_ids} AND status = 'FAILED' ORDER BY id FOR UPDATE
