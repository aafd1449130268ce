-- What a running job says of itself: how far it is, and the log lines it keeps. Neither touches the job's own rows.
CREATE TABLE windlass_progress (
    job_id  uuid PRIMARY KEY,
    fence   bigint NOT NULL,
    done    double precision NOT NULL,
    total   double precision,
    message text NOT NULL,
    at      bigint NOT NULL
);

CREATE TABLE windlass_job_log (
    job_id  uuid NOT NULL,
    fence   bigint NOT NULL,
    number  integer NOT NULL,
    attempt integer NOT NULL,
    at      bigint NOT NULL,
    level   smallint NOT NULL,
    logger  text NOT NULL,
    line    text NOT NULL,
    PRIMARY KEY (job_id, fence, number)
);

-- For looking: jobs by the business key they were given, and the few that rest. No job that just runs meets these.
CREATE INDEX windlass_job_business_key ON windlass_job (business_key, id) WHERE business_key IS NOT NULL;
CREATE INDEX windlass_hot_resting ON windlass_hot (status, id) WHERE status IN ('PAUSED', 'WAITING');
ALTER TABLE windlass_archive ADD COLUMN created_at bigint NOT NULL DEFAULT 0;

-- Set by whoever wants a node to finish what it runs and leave; the node sees it with its next heartbeat.
ALTER TABLE windlass_node ADD COLUMN drain_asked smallint NOT NULL DEFAULT 0;
