-- One item on its way to one subscriber of a publication.
CREATE TABLE windlass_handoff (
    id             text PRIMARY KEY,
    publication    text NOT NULL,
    subscriber     text NOT NULL,
    tenant         text NOT NULL,
    key            text NOT NULL,
    seen_key       text,              -- the key, unless it was rejected: what makes a repeat known
    source_id      text,              -- the execution that published it
    item           text NOT NULL,     -- its position among the items of that execution
    correlation_id text NOT NULL,
    payload        text,              -- gone when it is settled, unless a place outside refused it
    payload_hash   text NOT NULL,
    status         text NOT NULL,     -- WAITING, ADMITTED, REJECTED
    attempts       integer NOT NULL,
    due            integer,
    reason         text,              -- why it was rejected, or its last try failed
    execution_id   text,              -- the execution that it was admitted as
    created_at     integer NOT NULL,
    settled_at     integer
) WITHOUT ROWID;
CREATE UNIQUE INDEX windlass_handoff_key ON windlass_handoff (publication, subscriber, tenant, seen_key) WHERE seen_key IS NOT NULL;
CREATE INDEX windlass_handoff_due ON windlass_handoff (publication, subscriber, due, id) WHERE status = 'WAITING';
CREATE INDEX windlass_handoff_source ON windlass_handoff (source_id);
CREATE INDEX windlass_handoff_failing ON windlass_handoff (id) WHERE reason IS NOT NULL;
CREATE INDEX windlass_handoff_given_up ON windlass_handoff (id) WHERE status = 'REJECTED' AND payload IS NOT NULL;
CREATE INDEX windlass_handoff_refused ON windlass_handoff (id) WHERE status = 'WAITING' AND reason IS NOT NULL;

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

-- What transactions have counted of hand-offs, added up by a duty.
CREATE TABLE windlass_handoff_count (
    publication text NOT NULL,
    subscriber  text NOT NULL,
    minute      integer NOT NULL,
    folded      integer NOT NULL,     -- 1: added up
    admitted    integer NOT NULL,
    suppressed  integer NOT NULL,       -- repeats with the same payload
    rejected    integer NOT NULL,
    failed      integer NOT NULL,       -- tries
    wait_us     integer NOT NULL,       -- of those admitted, from publication on
    delayed     integer NOT NULL,       -- left in the backlog at first
    drained     integer NOT NULL        -- admitted from the backlog
);
CREATE INDEX windlass_handoff_count_minute ON windlass_handoff_count (folded, minute);
