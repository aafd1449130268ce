-- What ended, counted: every flush of outcomes adds one row per queue and waits for nobody, a duty adds them up. No key, because nobody
-- looks for a row of it. (This table was made ahead of its use, in another form, and nothing has used it.)
DROP TABLE windlass_stat_delta;
CREATE TABLE windlass_stat_delta (
    minute    bigint NOT NULL,
    wait_us   bigint NOT NULL,
    run_us    bigint NOT NULL,
    succeeded integer NOT NULL,
    failed    integer NOT NULL,
    retried   integer NOT NULL,
    runs      integer NOT NULL,
    queue     text NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

-- The same, added up by queue and minute, in whole minutes since 1970. The minute leads the key: the last hour of all queues, and what is
-- too old, are one stretch of it. `runs` are the attempts that entered their body, whose times the sums are of.
CREATE TABLE windlass_stat (
    minute    bigint NOT NULL,
    queue     text NOT NULL,
    succeeded bigint NOT NULL,
    failed    bigint NOT NULL,
    retried   bigint NOT NULL,
    runs      bigint NOT NULL,
    wait_us   bigint NOT NULL,
    run_us    bigint NOT NULL,
    PRIMARY KEY (minute, queue)
);
