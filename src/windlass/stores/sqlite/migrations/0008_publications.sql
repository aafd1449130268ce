-- One item on its way to one subscriber of a publication.
CREATE TABLE windlass_handoff (
    id             text PRIMARY KEY,
    publication    text NOT NULL,
    subscriber     text NOT NULL,
    tenant         text NOT NULL,
    key            text NOT NULL,
    seen_key       text,              -- the key, unless it was rejected: what makes a repeat known
    source_id      uuid,              -- the execution that published it
    item           integer NOT NULL,
    correlation_id text NOT NULL,
    payload        text,              -- gone when it is settled
    payload_hash   text NOT NULL,
    status         text NOT NULL,     -- WAITING, ADMITTED, REJECTED
    attempts       integer NOT NULL,
    due            integer,
    reason         text,
    execution_id   uuid,              -- the execution that it was admitted as
    created_at     integer NOT NULL,
    settled_at     integer
) WITHOUT ROWID;
CREATE UNIQUE INDEX windlass_handoff_key ON windlass_handoff (publication, subscriber, tenant, seen_key) WHERE seen_key IS NOT NULL;
CREATE INDEX windlass_handoff_due ON windlass_handoff (publication, subscriber, due, id) WHERE status = 'WAITING';
CREATE INDEX windlass_handoff_source ON windlass_handoff (source_id);

-- Who receives the items of a publication: a pipeline of this database, or a target outside.
CREATE TABLE windlass_subscription (
    publication   text NOT NULL,
    subscriber    text NOT NULL,
    kind          text NOT NULL,
    config        text NOT NULL,
    paused        integer NOT NULL,
    max_in_flight integer,
    PRIMARY KEY (publication, subscriber)
) WITHOUT ROWID;
