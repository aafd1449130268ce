-- Differs by need: each database lists its tables in its own catalogue, and knows itself by another name.

-- name: has_migrations :row
SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'windlass_migration'

-- name: installation :row
PRAGMA database_list
