-- What a running job says of itself: how far it is, and the log lines it keeps. Neither touches the job's own rows.
CREATE TABLE windlass_progress (
    job_id  text PRIMARY KEY,
    fence   integer NOT NULL,
    done    real NOT NULL,
    total   real,
    message text NOT NULL,
    at      integer NOT NULL
);

CREATE TABLE windlass_job_log (
    job_id  text NOT NULL,
    fence   integer NOT NULL,
    number  integer NOT NULL,
    attempt integer NOT NULL,
    at      integer NOT NULL,
    level   integer NOT NULL,
    logger  text NOT NULL,
    line    text NOT NULL,
    PRIMARY KEY (job_id, fence, number)
);

-- For looking: jobs by the business key they were given, and the few that rest. No job that just runs meets these.
CREATE INDEX windlass_job_business_key ON windlass_job (business_key, id) WHERE business_key IS NOT NULL;
CREATE INDEX windlass_hot_resting ON windlass_hot (status, id) WHERE status IN ('PAUSED', 'WAITING');
ALTER TABLE windlass_archive ADD COLUMN created_at integer NOT NULL DEFAULT 0;

-- Set by whoever wants a node to finish what it runs and leave; the node sees it with its next heartbeat.
ALTER TABLE windlass_node ADD COLUMN drain_asked integer NOT NULL DEFAULT 0;
