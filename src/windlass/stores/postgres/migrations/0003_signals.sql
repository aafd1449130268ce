-- What a job waits for before it runs, and the signal that came. A job that awaits none has no row here.
CREATE TABLE windlass_signal_wait (
    job_id     uuid PRIMARY KEY,
    key        text NOT NULL,
    timeout_us bigint,            -- from its release on; NULL: for ever
    open       smallint NOT NULL, -- 1: its signal may still come
    signal     text,              -- outcome, payload and reason, as JSON
    by_whom    text,              -- the principal that sent it
    at         bigint             -- when it came
);
CREATE INDEX windlass_signal_wait_key ON windlass_signal_wait (key, job_id) WHERE open = 1;

-- The deadlines of waiting jobs. Followers that are not released have none yet.
CREATE INDEX windlass_hot_waits ON windlass_hot (due, id) WHERE status = 'WAITING' AND due IS NOT NULL;
