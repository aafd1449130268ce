-- What is to be delivered outside of the database: dead letters to a foreign provider, rejects to a foreign sink.
-- What was delivered is deleted; what was refused stays until its retention ends.
CREATE TABLE windlass_outbox (
    id             text PRIMARY KEY,
    channel        text NOT NULL,     -- dead_letter or reject
    about          text NOT NULL,     -- what it is about, as its idempotency key: a second row for the same is never made
    destination    text NOT NULL,
    name           text NOT NULL,     -- of the pipeline, or of the target of a job
    tenant         text NOT NULL,
    correlation_id text,
    payload        text NOT NULL,
    status         text NOT NULL,     -- WAITING, REJECTED
    attempts       integer NOT NULL,
    due            integer NOT NULL,
    error          text,
    created_at     integer NOT NULL,
    settled_at     integer
) WITHOUT ROWID;
CREATE UNIQUE INDEX windlass_outbox_about ON windlass_outbox (channel, about);
CREATE INDEX windlass_outbox_due ON windlass_outbox (destination, due, id) WHERE status = 'WAITING';
CREATE INDEX windlass_outbox_settled ON windlass_outbox (settled_at, id) WHERE status = 'REJECTED';
