-- A step that waits for an answer from outside. A second round follows a re-drive; a row is kept until its execution is purged, so
-- that a repeated answer is still known as one.
CREATE TABLE windlass_external_wait (
    execution_id   text NOT NULL,
    step           integer NOT NULL,
    path           text NOT NULL, -- of the item; empty for a value that is no item
    round          integer NOT NULL,         -- from 1
    tenant         text NOT NULL,
    pipeline       text NOT NULL,
    correlation_id text NOT NULL,
    status         text NOT NULL,             -- WAITING, COMPLETED, EXPIRED, CANCELED
    closed         integer NOT NULL,         -- 1: the step waits in another round when it is reached again
    request        text,                      -- NULL: answered before the execution waited
    type           integer,                  -- number of the answer's type in the definition
    answer         text,
    answered_by    text,
    answered_at    integer,
    deadline       integer NOT NULL,
    created_at     integer NOT NULL,
    PRIMARY KEY (execution_id, step, path, round)
) WITHOUT ROWID;
CREATE INDEX windlass_external_wait_pending ON windlass_external_wait (pipeline, tenant, deadline, execution_id, step, path, round)
    WHERE status = 'WAITING';
CREATE INDEX windlass_external_wait_first ON windlass_external_wait (execution_id, deadline) WHERE status = 'WAITING';
CREATE INDEX windlass_external_wait_correlation ON windlass_external_wait (tenant, correlation_id, status, closed);

ALTER TABLE windlass_execution ADD COLUMN awaits integer NOT NULL DEFAULT 0; -- 1: it has steps that wait for answers from outside
-- An execution that starts over at an earlier step asks again, maybe about another value, in rounds that had no answer before: from
-- this one on, at the steps that it may have asked at, up to this step.
ALTER TABLE windlass_execution ADD COLUMN first_round integer NOT NULL DEFAULT 1;
ALTER TABLE windlass_execution ADD COLUMN asked_to integer NOT NULL DEFAULT -1;

-- Keys that sign tokens, where the settings name none.
CREATE TABLE windlass_secret (
    key_id     text PRIMARY KEY,
    secret     text NOT NULL,
    created_at integer NOT NULL
) WITHOUT ROWID;
