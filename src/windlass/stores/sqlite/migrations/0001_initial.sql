-- What a job is: written once at enqueue, never changed. Everything that changes lives in windlass_hot, then in windlass_done.
CREATE TABLE windlass_job (
    id              text PRIMARY KEY,
    queue           text NOT NULL,
    target          text NOT NULL,
    priority        integer NOT NULL,
    args            text NOT NULL,
    options         text,
    tags            text,
    params          text,
    correlation_id  text,
    idempotency_key text,
    business_key    text,
    parent_id       text,
    batch_id        text,
    created_at      integer NOT NULL
);

-- A row lives here only while its job does (PENDING, RUNNING, WAITING, PAUSED from PENDING), so the hot path never meets history.
CREATE TABLE windlass_hot (
    id          text PRIMARY KEY,
    queue       text NOT NULL,
    target      text NOT NULL,
    lane        text,
    status      text NOT NULL,
    priority    integer NOT NULL,
    due         integer,
    fence       integer NOT NULL,
    attempts    integer NOT NULL,
    crash_count integer NOT NULL,
    node        text,
    picked_at   integer,
    paused_from text
) WITHOUT ROWID;

-- Ends in id: a bulk enqueue gives half a million rows one due time, and the claim must not sort them.
CREATE INDEX windlass_hot_due ON windlass_hot (queue, priority, due, id)
    WHERE status = 'PENDING' AND lane IS NULL AND due IS NOT NULL;
CREATE INDEX windlass_hot_lane ON windlass_hot (queue, lane, priority, due, id)
    WHERE status = 'PENDING' AND lane IS NOT NULL AND due IS NOT NULL;
CREATE INDEX windlass_hot_node ON windlass_hot (node) WHERE status = 'RUNNING';

-- How a job ended. `reopened` jobs (retry of a dead letter) leave this table again.
CREATE TABLE windlass_done (
    id            text PRIMARY KEY,
    queue         text NOT NULL,
    target        text NOT NULL,
    status        text NOT NULL,
    fence         integer NOT NULL,
    attempts      integer NOT NULL,
    crash_count   integer NOT NULL,
    node          text,
    due           integer,
    result        text,
    error         text,
    error_class   text,
    reason        text,
    canceled_by   text,
    superseded_by text,
    paused_from   text,
    picked_at     integer,
    started_at    integer,
    finished_at   integer NOT NULL
) WITHOUT ROWID;
-- Not for SUCCEEDED, which most rows are: those are found along the primary key, and every success is spared an index entry.
CREATE INDEX windlass_done_status ON windlass_done (status, id) WHERE status <> 'SUCCEEDED';

-- One row per attempt, also for those that did not count (outcome lost, released, snoozed), hence the fence in the key.
CREATE TABLE windlass_attempt (
    job_id      text NOT NULL,
    fence       integer NOT NULL,
    number      integer NOT NULL,
    node        text,
    picked_at   integer,
    started_at  integer,
    ended_at    integer NOT NULL,
    wait_us     integer,
    outcome     text NOT NULL,
    error_class text,
    error       text,
    traceback   text,
    PRIMARY KEY (job_id, fence)
) WITHOUT ROWID;

-- Idempotency keys outlive their jobs, for ever.
CREATE TABLE windlass_key (
    idempotency_key text PRIMARY KEY,
    job_id          text NOT NULL
) WITHOUT ROWID;

-- Business keys live as long as their holder (a job or a schedule).
CREATE TABLE windlass_live_key (
    business_key text PRIMARY KEY,
    holder_kind  text NOT NULL,
    holder_id    text NOT NULL
) WITHOUT ROWID;
CREATE INDEX windlass_live_key_holder ON windlass_live_key (holder_id);

CREATE TABLE windlass_job_tag (
    tag    text NOT NULL,
    job_id text NOT NULL,
    PRIMARY KEY (tag, job_id)
) WITHOUT ROWID;

CREATE TABLE windlass_dead_letter (
    job_id      text PRIMARY KEY,
    fingerprint text NOT NULL,
    envelope    text NOT NULL,
    created_at  integer NOT NULL
);
CREATE INDEX windlass_dead_letter_fingerprint ON windlass_dead_letter (fingerprint, created_at);

CREATE TABLE windlass_queue (
    name       text PRIMARY KEY,
    paused     integer NOT NULL DEFAULT 0,
    cap        integer,
    in_use     integer NOT NULL DEFAULT 0,
    rate       real,
    tokens     real,
    tokens_at  integer
);

-- A lane holds jobs of one queue that not every claim may take: behind a gate, or of a target that some nodes do not know.
CREATE TABLE windlass_lane (
    queue      text NOT NULL,
    lane       text NOT NULL,
    kind       text NOT NULL,
    created_at integer NOT NULL,
    PRIMARY KEY (queue, lane)
) WITHOUT ROWID;

CREATE TABLE windlass_gate (
    name      text PRIMARY KEY,
    kind      text NOT NULL,
    cap       integer,
    in_use    integer NOT NULL DEFAULT 0,
    rate      real,
    tokens    real,
    tokens_at integer,
    open_at   integer,
    settings  text
);

CREATE TABLE windlass_permit (
    gate   text NOT NULL,
    job_id text NOT NULL,
    fence  integer NOT NULL,
    node   text NOT NULL,
    PRIMARY KEY (gate, job_id)
) WITHOUT ROWID;
CREATE INDEX windlass_permit_node ON windlass_permit (node);

CREATE TABLE windlass_node (
    id           text PRIMARY KEY,
    host         text NOT NULL,
    pid          integer NOT NULL,
    version      text NOT NULL,
    queues       text,
    started_at   integer NOT NULL,
    heartbeat_at integer NOT NULL,
    lease_until  integer NOT NULL,
    running      integer NOT NULL DEFAULT 0,
    state        text NOT NULL
);
CREATE INDEX windlass_node_lease ON windlass_node (lease_until);

CREATE TABLE windlass_lease (
    name       text PRIMARY KEY,
    holder     text,
    fence      integer NOT NULL,
    until      integer NOT NULL
);

CREATE TABLE windlass_alert (
    id           text PRIMARY KEY,
    target       text NOT NULL,
    error_hash   text NOT NULL,
    error_class  text NOT NULL,
    sample       text NOT NULL,
    count        integer NOT NULL,
    first_job_id text NOT NULL,
    last_job_id  text NOT NULL,
    first_at     integer NOT NULL,
    last_at      integer NOT NULL
);
CREATE INDEX windlass_alert_hash ON windlass_alert (target, error_hash, first_at);

CREATE TABLE windlass_stat_delta (
    id        text PRIMARY KEY,
    queue     text NOT NULL,
    at        integer NOT NULL,
    succeeded integer NOT NULL,
    failed    integer NOT NULL,
    retried   integer NOT NULL,
    wait_us   integer NOT NULL,
    run_us    integer NOT NULL
);

CREATE TABLE windlass_archive (
    id          text PRIMARY KEY,
    queue       text NOT NULL,
    target      text NOT NULL,
    status      text NOT NULL,
    job         text NOT NULL,
    finished_at integer NOT NULL
);
CREATE INDEX windlass_archive_finished ON windlass_archive (finished_at);
