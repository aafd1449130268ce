-- What a job waits behind besides its queue, and what a running one has a place of. NULL for all that wait for nothing else.
ALTER TABLE windlass_job ADD COLUMN lane text;
ALTER TABLE windlass_hot ADD COLUMN holds text;

-- A gate lets so many jobs through: a resource or a key of it, a limited queue, a circuit. One row is the whole truth of it, and who
-- claims locks that row first. (These two tables were made ahead of their use, in another form, and nothing has used them.)
-- Names of one kind are found as a range, byte by byte, whatever language the database sorts in.
DROP TABLE windlass_gate;
DROP TABLE windlass_permit;
CREATE TABLE windlass_gate (
    name     text COLLATE "C" PRIMARY KEY,
    cap      integer,
    in_use   integer NOT NULL DEFAULT 0,
    rate     integer,
    per_us   bigint,
    opens_at bigint,
    taken    text,
    retry_us bigint NOT NULL,
    used_at  bigint NOT NULL,
    circuit  text
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

-- Places given back. Whoever ends jobs only adds rows here and waits for nobody; the next claim takes them off the gate's count.
CREATE TABLE windlass_freed (
    gate   text COLLATE "C" NOT NULL,
    places integer NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX windlass_freed_gate ON windlass_freed (gate);

-- Places of bodies that go on although their job has ended: canceled, or given up after its timeout.
CREATE TABLE windlass_permit (
    job_id uuid NOT NULL,
    fence  bigint NOT NULL,
    node   text NOT NULL,
    holds  text NOT NULL,
    PRIMARY KEY (job_id, fence)
);
CREATE INDEX windlass_permit_node ON windlass_permit (node);
