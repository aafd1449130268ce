-- The batch that a job is a child of. Children have no row in windlass_flow: there may be millions.
ALTER TABLE windlass_job ADD COLUMN batch_id text;
CREATE INDEX windlass_job_batch ON windlass_job (batch_id, id) WHERE batch_id IS NOT NULL;

-- A batch is a group whose id is that of a job (target windlass:batch) and whose members are its children.
ALTER TABLE windlass_group ADD COLUMN kind integer NOT NULL DEFAULT 1;   -- 1 group, 2 batch
ALTER TABLE windlass_group ADD COLUMN loaded integer NOT NULL DEFAULT 1; -- 0 children are still added, 1 all are there, 2 failed ones are started over
ALTER TABLE windlass_group ADD COLUMN told_at integer NOT NULL DEFAULT 0; -- when its progress was last published; negative: by the last count
ALTER TABLE windlass_group ADD COLUMN stored_at integer NOT NULL DEFAULT 0; -- when children were last added
ALTER TABLE windlass_group ADD COLUMN loader text;                       -- the process that stored the last children
CREATE INDEX windlass_group_batch ON windlass_group (id) WHERE kind = 2;
