-- Differs by need: each database has its own catalog, and its own way to identify itself.

-- name: has_migrations :row
SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'windlass_migration'

-- name: installation :row
PRAGMA database_list
