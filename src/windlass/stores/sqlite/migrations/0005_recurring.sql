-- A schedule: when it fires, what it then stores, and what happens to ticks that were missed or overlap.
CREATE TABLE windlass_schedule (
    id         text PRIMARY KEY,
    key        text NOT NULL,
    origin     text,             -- module:attribute of the application that declares it; NULL: stored by app.schedule, kept until removed
    state      text NOT NULL,    -- active, paused, ended (no tick is left), retired (no longer declared)
    was        text,             -- the state in which it was retired, for a rollback of the code
    cron       text NOT NULL,    -- as written: a cron expression, or every(…)
    zone       text NOT NULL,
    anchor     integer NOT NULL, -- intervals are counted from here
    starts     integer,          -- no tick before
    ends       integer,          -- no tick after
    jitter_us  integer NOT NULL,
    misfire    text NOT NULL,
    catch_up   integer NOT NULL,
    overlap    text NOT NULL,
    call       text NOT NULL,    -- the row of the job to come: a node that fires it need not know its target
    definition text NOT NULL,    -- hash of all of the above, by which a deploy finds what has changed
    next_at    integer,          -- the next tick; NULL: none
    last_at    integer,          -- the last tick that was fired
    skipped    integer NOT NULL, -- ticks that were missed or overlapped, and so not fired
    changed_at integer NOT NULL  -- when it was stored, changed or retired
);
CREATE UNIQUE INDEX windlass_schedule_key ON windlass_schedule (key);
CREATE INDEX windlass_schedule_next ON windlass_schedule (next_at, id) WHERE state = 'active' AND next_at IS NOT NULL;
CREATE INDEX windlass_schedule_origin ON windlass_schedule (origin, key) WHERE origin IS NOT NULL;
CREATE INDEX windlass_schedule_retired ON windlass_schedule (changed_at) WHERE state = 'retired';

-- The run of each tick that was fired. A tick is fired once.
CREATE TABLE windlass_tick (
    schedule_id text NOT NULL,
    tick        integer NOT NULL,
    job_id      text NOT NULL,
    PRIMARY KEY (schedule_id, tick)
) WITHOUT ROWID;
CREATE INDEX windlass_tick_time ON windlass_tick (tick);

-- The keys that a version of an application declares; nodes of the same version share them.
CREATE TABLE windlass_declared (
    digest     text NOT NULL,
    key        text NOT NULL,
    written_at integer NOT NULL,
    PRIMARY KEY (digest, key)
) WITHOUT ROWID;

ALTER TABLE windlass_node ADD COLUMN origin text;   -- module:attribute of its application
ALTER TABLE windlass_node ADD COLUMN declares text; -- digest of the keys that it declares

ALTER TABLE windlass_live_key ADD COLUMN holder_kind text NOT NULL DEFAULT 'job'; -- job or schedule
