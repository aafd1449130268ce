-- What dead letters are looked for by. hidden: 1 while its job is PAUSED. They stay where they are when their jobs are archived.
-- created_at is when it died. What has a column here is not in the envelope's text.
ALTER TABLE windlass_dead_letter ADD COLUMN hidden smallint NOT NULL DEFAULT 0;
ALTER TABLE windlass_dead_letter ADD COLUMN target text NOT NULL DEFAULT '';
ALTER TABLE windlass_dead_letter ADD COLUMN queue text NOT NULL DEFAULT '';
ALTER TABLE windlass_dead_letter ADD COLUMN error_class text NOT NULL DEFAULT '';
ALTER TABLE windlass_dead_letter ADD COLUMN reason text NOT NULL DEFAULT '';
ALTER TABLE windlass_dead_letter ADD COLUMN execution_key text;
ALTER TABLE windlass_dead_letter ADD COLUMN correlation_id text;
ALTER TABLE windlass_dead_letter ADD COLUMN raised smallint NOT NULL DEFAULT 0;

-- One for each filter, in the order in which pages, re-drives and purges go along them. All end in job_id: a batch dies in one microsecond.
CREATE INDEX windlass_dead_letter_died ON windlass_dead_letter (hidden, created_at, job_id);
CREATE INDEX windlass_dead_letter_kind ON windlass_dead_letter (hidden, fingerprint, created_at, job_id);
CREATE INDEX windlass_dead_letter_target ON windlass_dead_letter (hidden, target, created_at, job_id);
CREATE INDEX windlass_dead_letter_queue ON windlass_dead_letter (hidden, queue, created_at, job_id);
CREATE INDEX windlass_dead_letter_error ON windlass_dead_letter (hidden, error_class, created_at, job_id);
CREATE INDEX windlass_dead_letter_reason ON windlass_dead_letter (hidden, reason, created_at, job_id);
DROP INDEX windlass_dead_letter_fingerprint;

-- One row per fingerprint, written by whoever fails or revives a job: how many there are, and which alert counts them now.
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
CREATE INDEX windlass_alert_first ON windlass_alert (first_at, id);

-- Who did what to many jobs at once.
CREATE TABLE windlass_audit (
    id        uuid PRIMARY KEY,
    at        bigint NOT NULL,
    principal text NOT NULL,
    action    text NOT NULL,
    count     integer NOT NULL,
    detail    text NOT NULL
);
CREATE INDEX windlass_audit_at ON windlass_audit (at, id);
