-- When a job that has not started yet expires; NULL for nearly all, and once it has started. Found by the sweeper.
ALTER TABLE windlass_hot ADD COLUMN expires integer;
CREATE INDEX windlass_hot_expires ON windlass_hot (expires, id) WHERE expires IS NOT NULL AND status <> 'RUNNING';

-- What a node's services keep failing with, as of its last heartbeat: `health` in any process sees it.
ALTER TABLE windlass_node ADD COLUMN error text;

-- Since when no node has known the target of a lane, as far as anybody noticed.
ALTER TABLE windlass_lane ADD COLUMN unknown_since integer;
UPDATE windlass_lane SET unknown_since = created_at;
