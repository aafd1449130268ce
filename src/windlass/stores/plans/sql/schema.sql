-- The migration runner's own statements.

-- name: lock_migrations :row
SELECT 1

-- name: create_migration_table :count
CREATE TABLE IF NOT EXISTS windlass_migration (
    version integer PRIMARY KEY, name text NOT NULL, checksum text NOT NULL, applied_at bigint NOT NULL)

-- name: applied_migrations :rows
SELECT version, checksum FROM windlass_migration ORDER BY version

-- name: insert_migration :count
INSERT INTO windlass_migration (version, name, checksum, applied_at) VALUES (:version, :name, :checksum, {now})
