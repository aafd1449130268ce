-- A step of an execution updates its row, in columns that no index has: with room in the page for the new version, no index is written.
-- `updated_at` is therefore not written by steps, but by what is rare: the time of the last one is in the log.
ALTER TABLE windlass_execution SET (fillfactor = 50);
