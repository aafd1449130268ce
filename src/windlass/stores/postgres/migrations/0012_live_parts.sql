-- The index of parts with a job, for statements that say so in these words alone. One that looks a part up by its job has the index by
-- jobs: while there are few parts, the planner would take this one for as good, and read all of it.
DROP INDEX windlass_part_live;
CREATE INDEX windlass_part_live ON windlass_part (execution_id, stage, segment) WHERE CASE WHEN job_id IS NULL THEN 0 ELSE 1 END = 1;
