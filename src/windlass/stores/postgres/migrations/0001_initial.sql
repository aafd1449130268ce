-- What a job is: written once at enqueue, never changed. Everything that changes lives in windlass_hot, then in windlass_done.
CREATE TABLE windlass_job (
    id              uuid PRIMARY KEY,
    queue           text NOT NULL,
    target          text NOT NULL,
    priority        smallint NOT NULL,
    args            text NOT NULL,
    options         text,
    tags            text,
    params          text,
    correlation_id  text,
    idempotency_key text,
    business_key    text,
    parent_id       uuid,
    batch_id        uuid,
    created_at      bigint NOT NULL
);

-- A row lives here only while its job does (PENDING, RUNNING, WAITING, PAUSED from PENDING), so the hot path never meets history.
CREATE TABLE windlass_hot (
    id          uuid PRIMARY KEY,
    queue       text NOT NULL,
    target      text NOT NULL,
    lane        text,
    status      text NOT NULL,
    priority    smallint NOT NULL,
    due         bigint,
    fence       bigint NOT NULL,
    attempts    integer NOT NULL,
    crash_count integer NOT NULL,
    node        text,
    picked_at   bigint,
    paused_from text
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

-- Ends in id: a bulk enqueue gives half a million rows one due time, and the claim must not sort them.
CREATE INDEX windlass_hot_due ON windlass_hot (queue, priority, due, id)
    WHERE status = 'PENDING' AND lane IS NULL AND due IS NOT NULL;
CREATE INDEX windlass_hot_lane ON windlass_hot (queue, lane, priority, due, id)
    WHERE status = 'PENDING' AND lane IS NOT NULL AND due IS NOT NULL;
CREATE INDEX windlass_hot_node ON windlass_hot (node) WHERE status = 'RUNNING';

-- How a job ended. `reopened` jobs (retry of a dead letter) leave this table again.
CREATE TABLE windlass_done (
    id            uuid PRIMARY KEY,
    queue         text NOT NULL,
    target        text NOT NULL,
    status        text NOT NULL,
    fence         bigint NOT NULL,
    attempts      integer NOT NULL,
    crash_count   integer NOT NULL,
    node          text,
    due           bigint,
    result        text,
    error         text,
    error_class   text,
    reason        text,
    canceled_by   uuid,
    superseded_by uuid,
    paused_from   text,
    picked_at     bigint,
    started_at    bigint,
    finished_at   bigint NOT NULL
);
-- Not for SUCCEEDED, which most rows are: those are found along the primary key, and every success is spared an index entry.
CREATE INDEX windlass_done_status ON windlass_done (status, id) WHERE status <> 'SUCCEEDED';

-- One row per attempt, also for those that did not count (outcome lost, released, snoozed), hence the fence in the key.
CREATE TABLE windlass_attempt (
    job_id      uuid NOT NULL,
    fence       bigint NOT NULL,
    number      integer NOT NULL,
    node        text,
    picked_at   bigint,
    started_at  bigint,
    ended_at    bigint NOT NULL,
    wait_us     bigint,
    outcome     text NOT NULL,
    error_class text,
    error       text,
    traceback   text,
    PRIMARY KEY (job_id, fence)
);

-- Idempotency keys outlive their jobs, for ever.
CREATE TABLE windlass_key (
    idempotency_key text PRIMARY KEY,
    job_id          uuid NOT NULL
);

-- Business keys live as long as their holder (a job or a schedule).
CREATE TABLE windlass_live_key (
    business_key text PRIMARY KEY,
    holder_kind  text NOT NULL,
    holder_id    uuid NOT NULL
);
CREATE INDEX windlass_live_key_holder ON windlass_live_key (holder_id);

CREATE TABLE windlass_job_tag (
    tag    text NOT NULL,
    job_id uuid NOT NULL,
    PRIMARY KEY (tag, job_id)
);

CREATE TABLE windlass_dead_letter (
    job_id      uuid PRIMARY KEY,
    fingerprint text NOT NULL,
    envelope    text NOT NULL,
    created_at  bigint NOT NULL
);
CREATE INDEX windlass_dead_letter_fingerprint ON windlass_dead_letter (fingerprint, created_at);

CREATE TABLE windlass_queue (
    name       text PRIMARY KEY,
    paused     smallint NOT NULL DEFAULT 0,
    cap        integer,
    in_use     integer NOT NULL DEFAULT 0,
    rate       double precision,
    tokens     double precision,
    tokens_at  bigint
);

-- A lane holds jobs of one queue that not every claim may take: behind a gate, or of a target that some nodes do not know.
CREATE TABLE windlass_lane (
    queue      text NOT NULL,
    lane       text NOT NULL,
    kind       text NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (queue, lane)
);

CREATE TABLE windlass_gate (
    name      text PRIMARY KEY,
    kind      text NOT NULL,
    cap       integer,
    in_use    integer NOT NULL DEFAULT 0,
    rate      double precision,
    tokens    double precision,
    tokens_at bigint,
    open_at   bigint,
    settings  text
);

CREATE TABLE windlass_permit (
    gate   text NOT NULL,
    job_id uuid NOT NULL,
    fence  bigint NOT NULL,
    node   text NOT NULL,
    PRIMARY KEY (gate, job_id)
);
CREATE INDEX windlass_permit_node ON windlass_permit (node);

CREATE TABLE windlass_node (
    id           text PRIMARY KEY,
    host         text NOT NULL,
    pid          integer NOT NULL,
    version      text NOT NULL,
    queues       text,
    started_at   bigint NOT NULL,
    heartbeat_at bigint NOT NULL,
    lease_until  bigint NOT NULL,
    running      integer NOT NULL DEFAULT 0,
    state        text NOT NULL
);
CREATE INDEX windlass_node_lease ON windlass_node (lease_until);

CREATE TABLE windlass_lease (
    name       text PRIMARY KEY,
    holder     text,
    fence      bigint NOT NULL,
    until      bigint NOT NULL
);

CREATE TABLE windlass_alert (
    id           uuid PRIMARY KEY,
    target       text NOT NULL,
    error_hash   text NOT NULL,
    error_class  text NOT NULL,
    sample       text NOT NULL,
    count        integer NOT NULL,
    first_job_id uuid NOT NULL,
    last_job_id  uuid NOT NULL,
    first_at     bigint NOT NULL,
    last_at      bigint NOT NULL
);
CREATE INDEX windlass_alert_hash ON windlass_alert (target, error_hash, first_at);

CREATE TABLE windlass_stat_delta (
    id        uuid PRIMARY KEY,
    queue     text NOT NULL,
    at        bigint NOT NULL,
    succeeded integer NOT NULL,
    failed    integer NOT NULL,
    retried   integer NOT NULL,
    wait_us   bigint NOT NULL,
    run_us    bigint NOT NULL
);

CREATE TABLE windlass_archive (
    id          uuid PRIMARY KEY,
    queue       text NOT NULL,
    target      text NOT NULL,
    status      text NOT NULL,
    job         text NOT NULL,
    finished_at bigint NOT NULL
);
CREATE INDEX windlass_archive_finished ON windlass_archive (finished_at);
