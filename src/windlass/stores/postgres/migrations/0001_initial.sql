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
    lane            text, -- what it waits behind besides its queue; NULL for most
    created_at      bigint NOT NULL
);
CREATE INDEX windlass_job_business_key ON windlass_job (business_key, id) WHERE business_key IS NOT NULL;

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
    paused_from text,
    holds       text,  -- the gates of which it has a permit, as a JSON list; NULL for most
    expires     bigint -- when it expires unless it has started; NULL for most, and once it has started
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

-- Ends in id: a bulk enqueue gives half a million rows one due time, and the claim must not sort them.
CREATE INDEX windlass_hot_due ON windlass_hot (queue, priority, due, id)
    WHERE status = 'PENDING' AND lane IS NULL AND due IS NOT NULL;
CREATE INDEX windlass_hot_lane ON windlass_hot (queue, lane, priority, due, id)
    WHERE status = 'PENDING' AND lane IS NOT NULL AND due IS NOT NULL;
CREATE INDEX windlass_hot_node ON windlass_hot (node) WHERE status = 'RUNNING';
-- For the sweeper and for searches. A job that just runs has no entry in either.
CREATE INDEX windlass_hot_expires ON windlass_hot (expires, id) WHERE expires IS NOT NULL AND status <> 'RUNNING';
CREATE INDEX windlass_hot_resting ON windlass_hot (status, id) WHERE status IN ('PAUSED', 'WAITING');

-- How a job ended. A dead letter that is retried leaves this table again.
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

-- Business keys live as long as the job that holds them.
CREATE TABLE windlass_live_key (
    business_key text PRIMARY KEY,
    holder_id    uuid NOT NULL
);
CREATE INDEX windlass_live_key_holder ON windlass_live_key (holder_id);

CREATE TABLE windlass_job_tag (
    tag    text NOT NULL,
    job_id uuid NOT NULL,
    PRIMARY KEY (tag, job_id)
);

-- The progress and the kept log lines of a running job. Neither touches the job's own rows.
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

-- Ended jobs, one row each. Searches work here as in the tables above: by business key, and for the few that did not succeed.
CREATE TABLE windlass_archive (
    id           uuid PRIMARY KEY,
    queue        text NOT NULL,
    target       text NOT NULL,
    status       text NOT NULL,
    business_key text,
    created_at   bigint NOT NULL,
    finished_at  bigint NOT NULL,
    job          text NOT NULL
);
CREATE INDEX windlass_archive_finished ON windlass_archive (finished_at);
CREATE INDEX windlass_archive_business_key ON windlass_archive (business_key, id) WHERE business_key IS NOT NULL;
CREATE INDEX windlass_archive_status ON windlass_archive (status, id) WHERE status <> 'SUCCEEDED';

CREATE TABLE windlass_queue (
    name   text PRIMARY KEY,
    paused smallint NOT NULL DEFAULT 0
);

-- Lanes of targets that some node did not know, and since when no node has been seen to know them.
CREATE TABLE windlass_lane (
    queue         text NOT NULL,
    lane          text NOT NULL,
    created_at    bigint NOT NULL,
    unknown_since bigint NOT NULL,
    PRIMARY KEY (queue, lane)
);

-- A gate counts one limit: of a resource or a key of it, of a queue, of a circuit. Its row is the whole truth about the limit, and a
-- claim locks that row first. Names of one kind are found as a range, byte by byte, whatever language the database sorts in.
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

-- Permits given back. The end of a job only adds rows here and waits for no lock; the next claim takes them off the gate's count.
CREATE TABLE windlass_freed (
    gate   text COLLATE "C" NOT NULL,
    places integer NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX windlass_freed_gate ON windlass_freed (gate);

-- Permits of bodies that go on although their job has ended: canceled, or failed after its timeout.
CREATE TABLE windlass_permit (
    job_id uuid NOT NULL,
    fence  bigint NOT NULL,
    node   text NOT NULL,
    holds  text NOT NULL,
    PRIMARY KEY (job_id, fence)
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
    state        text NOT NULL,
    drain_asked  smallint NOT NULL DEFAULT 0, -- 1: finish what runs and leave; the node sees it with its next heartbeat
    error        text                         -- what its services keep failing with, as of its last heartbeat, for `health`
);
CREATE INDEX windlass_node_lease ON windlass_node (lease_until);

-- since and passed_at are the rhythm of a duty: when it was first known, and when any node last did it to the end.
CREATE TABLE windlass_lease (
    name      text PRIMARY KEY,
    holder    text,
    fence     bigint NOT NULL,
    until     bigint NOT NULL,
    since     bigint NOT NULL,
    passed_at bigint
);

-- hidden: 1 while its job is PAUSED. created_at is when the job failed. Dead letters stay here when their jobs are archived. What has a
-- column is not in the envelope's text.
CREATE TABLE windlass_dead_letter (
    job_id         uuid PRIMARY KEY,
    fingerprint    text NOT NULL,
    envelope       text NOT NULL,
    created_at     bigint NOT NULL,
    hidden         smallint NOT NULL,
    target         text NOT NULL,
    queue          text NOT NULL,
    error_class    text NOT NULL,
    reason         text NOT NULL,
    execution_key  text,
    correlation_id text,
    raised         smallint NOT NULL
);
-- One for each filter, in the order of pages, re-drives and purges. All end in job_id: a batch of jobs fails in one microsecond.
CREATE INDEX windlass_dead_letter_died ON windlass_dead_letter (hidden, created_at, job_id);
CREATE INDEX windlass_dead_letter_kind ON windlass_dead_letter (hidden, fingerprint, created_at, job_id);
CREATE INDEX windlass_dead_letter_target ON windlass_dead_letter (hidden, target, created_at, job_id);
CREATE INDEX windlass_dead_letter_queue ON windlass_dead_letter (hidden, queue, created_at, job_id);
CREATE INDEX windlass_dead_letter_error ON windlass_dead_letter (hidden, error_class, created_at, job_id);
CREATE INDEX windlass_dead_letter_reason ON windlass_dead_letter (hidden, reason, created_at, job_id);

-- One row per fingerprint, written by the transaction that fails or revives a job: how many there are, and which alert counts them.
CREATE TABLE windlass_dead_letter_group (
    fingerprint text PRIMARY KEY,
    target      text NOT NULL,
    error_class text NOT NULL,
    sample      text NOT NULL,
    count       integer NOT NULL,
    last_at     bigint NOT NULL,
    alert_id    uuid NOT NULL,
    alert_at    bigint NOT NULL
);
CREATE INDEX windlass_dead_letter_group_count ON windlass_dead_letter_group (count, fingerprint);

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
CREATE INDEX windlass_alert_first ON windlass_alert (first_at, id);

-- Actions on many jobs at once, and who took them.
CREATE TABLE windlass_audit (
    id        uuid PRIMARY KEY,
    at        bigint NOT NULL,
    principal text NOT NULL,
    action    text NOT NULL,
    count     integer NOT NULL,
    detail    text NOT NULL
);
CREATE INDEX windlass_audit_at ON windlass_audit (at, id);

-- Counts of what ended: every flush of outcomes adds one row per queue and waits for no lock; a duty adds them up. No key, because no
-- statement looks for one row.
CREATE TABLE windlass_stat_delta (
    minute    bigint NOT NULL,
    wait_us   bigint NOT NULL,
    run_us    bigint NOT NULL,
    succeeded integer NOT NULL,
    failed    integer NOT NULL,
    retried   integer NOT NULL,
    runs      integer NOT NULL,
    queue     text NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

-- The same, added up by queue and minute, in whole minutes since 1970. The minute leads the key: the last hour of all queues, and what is
-- too old, are one stretch of it. `runs` counts the attempts that entered their body, whose times the sums are of.
CREATE TABLE windlass_stat (
    minute    bigint NOT NULL,
    queue     text NOT NULL,
    succeeded bigint NOT NULL,
    failed    bigint NOT NULL,
    retried   bigint NOT NULL,
    runs      bigint NOT NULL,
    wait_us   bigint NOT NULL,
    run_us    bigint NOT NULL,
    PRIMARY KEY (minute, queue)
);
