-- A step that waits for an answer from outside. A second round follows a re-drive; a row is kept until its execution is purged, so
-- that a repeated answer is still known as one.
CREATE TABLE windlass_external_wait (
    execution_id text NOT NULL,
    step         integer NOT NULL,
    path         text NOT NULL, -- of the item; empty for a value that is no item
    round        integer NOT NULL,
    status       text NOT NULL,             -- WAITING, COMPLETED, EXPIRED, CANCELED
    request      text,
    answer       text,
    answered_by  text,
    deadline     integer NOT NULL,
    created_at   integer NOT NULL,
    PRIMARY KEY (execution_id, step, path, round)
) WITHOUT ROWID;
CREATE INDEX windlass_external_wait_due ON windlass_external_wait (deadline, execution_id, step, path, round) WHERE status = 'WAITING';

-- Keys that sign tokens, where the settings name none.
CREATE TABLE windlass_secret (
    key_id     text PRIMARY KEY,
    secret     text NOT NULL,
    created_at integer NOT NULL
) WITHOUT ROWID;
