-- A step that waits for an answer from outside. A second round follows a re-drive; a row is kept until its execution is purged, so
-- that a repeated answer is still known as one.
CREATE TABLE windlass_external_wait (
    execution_id uuid NOT NULL,
    step         smallint NOT NULL,
    path         text COLLATE "C" NOT NULL, -- of the item; empty for a value that is no item
    round        smallint NOT NULL,
    status       text NOT NULL,             -- WAITING, COMPLETED, EXPIRED, CANCELED
    request      text,
    answer       text,
    answered_by  text,
    deadline     bigint NOT NULL,
    created_at   bigint NOT NULL,
    PRIMARY KEY (execution_id, step, path, round)
);
CREATE INDEX windlass_external_wait_due ON windlass_external_wait (deadline, execution_id, step, path, round) WHERE status = 'WAITING';

-- Keys that sign tokens, where the settings name none.
CREATE TABLE windlass_secret (
    key_id     text PRIMARY KEY,
    secret     text NOT NULL,
    created_at bigint NOT NULL
);
