-- Differs by need: the catalog, and the lock that serializes concurrent migrations.

-- name: has_migrations :row
SELECT 1 WHERE to_regclass('windlass_migration') IS NOT NULL

-- name: lock_migrations :row
SELECT pg_advisory_xact_lock(7719472615823)

-- name: installation :row
SELECT current_database(), (SELECT min(applied_at) FROM windlass_migration)
