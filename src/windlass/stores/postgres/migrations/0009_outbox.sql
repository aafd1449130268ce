-- What is to be delivered outside of the database: dead letters to a foreign provider, rejects to a foreign sink.
CREATE TABLE windlass_outbox (
    id          uuid PRIMARY KEY,
    channel     text NOT NULL,
    about       text NOT NULL,     -- what it tells of: a second row for the same is never made
    destination text NOT NULL,
    payload     text NOT NULL,
    attempts    integer NOT NULL,
    due         bigint NOT NULL,
    error       text,
    created_at  bigint NOT NULL
);
CREATE UNIQUE INDEX windlass_outbox_about ON windlass_outbox (channel, about);
CREATE INDEX windlass_outbox_due ON windlass_outbox (destination, due, id);
