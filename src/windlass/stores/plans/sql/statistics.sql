-- Counts of ended jobs: a delta per queue and flush, written with the outcomes; sums per queue and minute, written by a duty.

-- name: stat_rows :table
minute integer, queue text, succeeded integer, failed integer, retried integer, runs integer, wait_us integer, run_us integer

-- name: this_minute :fragment
{now} / 60000000

-- Counts jobs that have just ended, from their stored rows: reading two rows per job costs a fifth of parsing its JSON again.
-- name: count_ended :count
INSERT INTO windlass_stat_delta (queue, minute, succeeded, failed, retried, runs, wait_us, run_us)
SELECT d.queue, {this_minute}, sum(CASE WHEN d.status = 'SUCCEEDED' THEN 1 ELSE 0 END),
    sum(CASE WHEN d.status = 'FAILED' THEN 1 ELSE 0 END), 0, count(a.started_at), coalesce(sum(a.wait_us), 0),
    coalesce(sum(a.ended_at - a.started_at), 0)
FROM {ids} i CROSS JOIN windlass_done d LEFT JOIN windlass_attempt a ON {a.job_id = d.id} AND a.fence = d.fence
WHERE {d.id = i.id} GROUP BY d.queue

-- Runs before the jobs are requeued, while their fence is still that of the attempt. Snoozed and released jobs are not counted: they
-- have not failed.
-- name: count_retried :count
INSERT INTO windlass_stat_delta (queue, minute, succeeded, failed, retried, runs, wait_us, run_us)
SELECT h.queue, {this_minute}, 0, 0, count(*), count(a.started_at), coalesce(sum(a.wait_us), 0),
    coalesce(sum(a.ended_at - a.started_at), 0)
FROM windlass_hot h JOIN windlass_attempt a ON {a.job_id = h.id} AND a.fence = h.fence
WHERE h.id {in_ids} AND a.outcome = 'retried' GROUP BY h.queue

-- name: take_deltas :rows
DELETE FROM windlass_stat_delta WHERE {row_id} IN (SELECT {row_id} FROM windlass_stat_delta LIMIT {chunk})
RETURNING minute, queue, succeeded, failed, retried, runs, wait_us, run_us

-- name: add_to_minutes :count
INSERT INTO windlass_stat (minute, queue, succeeded, failed, retried, runs, wait_us, run_us)
SELECT minute, queue, succeeded, failed, retried, runs, wait_us, run_us FROM {stat_rows} r WHERE true
ON CONFLICT (minute, queue) DO UPDATE SET succeeded = windlass_stat.succeeded + excluded.succeeded,
    failed = windlass_stat.failed + excluded.failed, retried = windlass_stat.retried + excluded.retried,
    runs = windlass_stat.runs + excluded.runs, wait_us = windlass_stat.wait_us + excluded.wait_us,
    run_us = windlass_stat.run_us + excluded.run_us

-- name: oldest_minute :row
SELECT min(minute), {this_minute} FROM windlass_stat

-- name: forget_minutes :count
DELETE FROM windlass_stat WHERE minute < :before

-- One statement, so that it sees each delta in exactly one of the tables while the duty moves them.
-- name: last_hour :rows
SELECT queue, CAST(sum(succeeded) AS {integer}), CAST(sum(failed) AS {integer}), CAST(sum(retried) AS {integer}), CAST(sum(runs) AS {integer}),
    CAST(sum(wait_us) AS {integer}), CAST(sum(run_us) AS {integer})
FROM (
    SELECT queue, succeeded, failed, retried, runs, wait_us, run_us FROM windlass_stat WHERE minute > {this_minute} - 60
    UNION ALL
    SELECT queue, succeeded, failed, retried, runs, wait_us, run_us FROM windlass_stat_delta WHERE minute > {this_minute} - 60
) counted GROUP BY queue
