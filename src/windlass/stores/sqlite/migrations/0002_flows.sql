-- The position of a job in its flow, written once with the job. A job outside of flows has no row here.
CREATE TABLE windlass_flow (
    job_id    text PRIMARY KEY,
    flow_id   text NOT NULL, -- the first job of the flow
    parent_id text,          -- the job or group that it follows; NULL: it starts at once
    follows   integer,       -- the end of its parent that releases it: 1 success, 3 failure, 4 any
    group_id  text,          -- the group that it counts for
    delay_us  integer,       -- of a follower: from its release until it is due
    due_at    integer        -- of a follower: not before
) WITHOUT ROWID;
CREATE INDEX windlass_flow_parent ON windlass_flow (parent_id, follows, job_id) WHERE parent_id IS NOT NULL;
-- Ids of members grow in the order of their results.
CREATE INDEX windlass_flow_group ON windlass_flow (group_id, job_id) WHERE group_id IS NOT NULL;
CREATE INDEX windlass_flow_jobs ON windlass_flow (flow_id, job_id);

-- How many members of a group have ended. Here there is one writer; on PostgreSQL a flush that cannot lock the row at once adds a row to
-- windlass_group_delta instead.
CREATE TABLE windlass_group (
    id         text PRIMARY KEY,
    flow_id    text NOT NULL,
    total      integer NOT NULL,
    succeeded  integer NOT NULL,
    failed     integer NOT NULL,
    touched_at integer NOT NULL
) WITHOUT ROWID;
CREATE INDEX windlass_group_flow ON windlass_group (flow_id, id);

CREATE TABLE windlass_group_delta (
    group_id  text NOT NULL,
    succeeded integer NOT NULL,
    failed    integer NOT NULL
);
CREATE INDEX windlass_group_delta_group ON windlass_group_delta (group_id);

-- Cascades and releases of more rows than one transaction writes: what is left to do.
CREATE TABLE windlass_operation (
    id         text PRIMARY KEY,
    kind       text NOT NULL,
    detail     text NOT NULL,
    touched_at integer NOT NULL
) WITHOUT ROWID;

-- The job or group whose end canceled a follower: a retry of it revives the follower.
ALTER TABLE windlass_done ADD COLUMN canceled_by text;
CREATE INDEX windlass_done_canceled_by ON windlass_done (canceled_by, id) WHERE canceled_by IS NOT NULL;

ALTER TABLE windlass_archive ADD COLUMN flow_id text;
CREATE INDEX windlass_archive_flow ON windlass_archive (flow_id, id) WHERE flow_id IS NOT NULL;
