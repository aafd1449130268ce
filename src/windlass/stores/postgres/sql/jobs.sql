-- Differs by need: one statement writes both rows of a job and notifies; COPY; one statement writes all outcomes, from arrays.

-- name: work_notification :fragment
SELECT CASE WHEN :notification::text IS NOT NULL THEN pg_notify('windlass_work', :notification::text) END

-- name: notify_work :count
{work_notification}

-- name: insert_job :count
WITH stored AS (
    INSERT INTO windlass_job ({new_job_columns}, created_at) VALUES ({:new_job_columns}, {now})
), waiting AS (
    INSERT INTO windlass_hot ({new_hot})
    VALUES (:id, :queue, :target, :lane, 'PENDING', :priority, coalesce(:due_at::bigint, {now} + :delay_us::bigint), 0, 0, 0,
        coalesce(:expires_at::bigint, {now} + :expires_us::bigint))
)
{work_notification}

-- name: insert_jobs :count
WITH input AS MATERIALIZED (
    SELECT * FROM {new_jobs} n
), stored AS (
    INSERT INTO windlass_job ({new_job_columns}, created_at) SELECT {new_job_columns}, {now} FROM input
), waiting AS (
    INSERT INTO windlass_hot ({new_hot}) {new_hot_values} FROM input
)
{work_notification}

-- name: copy_jobs :count
COPY windlass_job ({new_job_columns}, created_at) FROM STDIN

-- name: copy_hot :count
COPY windlass_hot ({new_hot}) FROM STDIN

-- Rows are found by the list of ids, their fences checked in a hashed list, and rows and outcomes joined by a FULL JOIN, which has no
-- nested loop: in the form DELETE … USING statistics of an almost empty table made it a loop over all jobs, for each outcome.
-- name: of_the_claims :fragment
h.id = ANY(:ids::uuid[]) AND ((h.id, h.fence) IN (SELECT c.id, c.fence FROM unnest(:ids::uuid[], :fences::bigint[]) AS c(id, fence))) IS TRUE

-- name: gone :fragment
removed AS (
    DELETE FROM windlass_hot h WHERE {of_the_claims}
    RETURNING h.id, h.fence, h.queue, h.target, h.crash_count, h.node, h.due, h.picked_at, h.holds
), gone AS MATERIALIZED (
    SELECT r.queue, r.target, r.crash_count, r.node, r.due, r.picked_at, r.holds, i.*
    FROM removed r FULL JOIN input i ON i.id = r.id AND i.fence = r.fence WHERE num_nonnulls(r.id) = 1
), ended AS (
    INSERT INTO windlass_done (id, queue, target, status, fence, attempts, crash_count, node, due, result, error, error_class,
        reason, picked_at, started_at, finished_at)
    SELECT id, queue, target, status, fence, attempts, crash_count, node, due, result, error, error_class, reason, picked_at,
        started_at, ended_at
    FROM gone
), recorded AS (
    INSERT INTO windlass_attempt (job_id, fence, number, node, picked_at, started_at, ended_at, wait_us, outcome, error_class,
        error, traceback)
    SELECT id, fence, number, node, picked_at, started_at, ended_at, wait_us, outcome, error_class, error, traceback FROM gone
), freed AS (
    INSERT INTO windlass_freed (gate, places)
    SELECT e.value, sum(h.holders) FROM (
        SELECT holds, count(*) AS holders FROM gone WHERE holds IS NOT NULL GROUP BY holds
    ) h CROSS JOIN {each_held} GROUP BY e.value
), counted AS (
    INSERT INTO windlass_stat_delta (queue, minute, succeeded, failed, retried, runs, wait_us, run_us)
    SELECT queue, {this_minute}, sum(CASE WHEN status = 'SUCCEEDED' THEN 1 ELSE 0 END),
        sum(CASE WHEN status = 'FAILED' THEN 1 ELSE 0 END), 0, count(started_at), coalesce(sum(wait_us), 0),
        coalesce(sum(ended_at - started_at), 0)
    FROM gone GROUP BY queue
)
SELECT count(*), CASE WHEN count(*) < :expected::bigint THEN array_agg(id) END, CASE WHEN count(*) < :expected::bigint THEN array_agg(fence) END FROM gone

-- name: finish :row
WITH input AS MATERIALIZED (
    SELECT * FROM unnest(:ids::uuid[], :fences::bigint[], :statuses::text[], :outcomes::text[], :numbers::int[],
        :attempts::int[], :results::text[], :errors::text[], :error_classes::text[], :tracebacks::text[], :reasons::text[],
        :started::bigint[], :ended::bigint[], :waits::bigint[])
        AS i(id, fence, status, outcome, number, attempts, result, error, error_class, traceback, reason, started_at,
            ended_at, wait_us)
), {gone}

-- name: finish_succeeded :row
WITH input AS MATERIALIZED (
    SELECT id, fence, 'SUCCEEDED'::text AS status, 'succeeded'::text AS outcome, number, number AS attempts, result,
        NULL::text AS error, NULL::text AS error_class, NULL::text AS traceback, NULL::text AS reason, started_at, ended_at, wait_us
    FROM unnest(:ids::uuid[], :fences::bigint[], :numbers::int[], :results::text[], :started::bigint[], :ended::bigint[],
        :waits::bigint[]) AS i(id, fence, number, result, started_at, ended_at, wait_us)
), {gone}

-- name: changed :fragment
((SELECT of FROM change) -> (h.id || ' ' || h.fence))

-- The changes are looked up in a JSON object: as a join the planner could choose to repeat them for each job of the table.
-- name: reopen :rows
WITH input AS MATERIALIZED (
    SELECT * FROM unnest(:ids::uuid[], :fences::bigint[], :outcomes::text[], :numbers::int[], :attempts::int[],
        :errors::text[], :error_classes::text[], :tracebacks::text[], :started::bigint[], :ended::bigint[], :waits::bigint[],
        :delays::bigint[], :lanes::text[])
        AS i(id, fence, outcome, number, attempts, error, error_class, traceback, started_at, ended_at, wait_us, delay, lane)
), held AS MATERIALIZED (
    SELECT h.id, h.fence, h.queue, h.node, h.picked_at, h.holds FROM windlass_hot h WHERE {of_the_claims} ORDER BY h.id FOR UPDATE OF h
), attempted AS MATERIALIZED (
    SELECT held.queue, held.node, held.picked_at, i.*
    FROM held FULL JOIN input i ON i.id = held.id AND i.fence = held.fence WHERE num_nonnulls(held.id) = 1
), change AS MATERIALIZED (
    SELECT jsonb_object_agg(i.id || ' ' || i.fence, jsonb_build_object('attempts', i.attempts, 'delay', i.delay, 'lane', i.lane, 'started', i.started_at)) AS of
    FROM attempted i
), requeued AS (
    UPDATE windlass_hot h SET status = 'PENDING', fence = CASE WHEN h.fence < 4611686018427387904 THEN h.fence + 1 ELSE 4611686018427387904 END,
        attempts = ({changed} ->> 'attempts')::int, node = NULL, picked_at = NULL, holds = NULL,
        due = CASE WHEN {changed} ->> 'delay' IS NULL THEN h.due WHEN ({changed} ->> 'delay')::bigint >= 0 THEN {now} + ({changed} ->> 'delay')::bigint END,
        lane = nullif(coalesce({changed} ->> 'lane', h.lane), ''), expires = CASE WHEN {changed} ->> 'started' IS NULL THEN h.expires END
    WHERE h.id = ANY(ARRAY(SELECT id FROM held))
), recorded AS (
    INSERT INTO windlass_attempt (job_id, fence, number, node, picked_at, started_at, ended_at, wait_us, outcome, error_class,
        error, traceback)
    SELECT id, fence, number, node, picked_at, started_at, ended_at, wait_us, outcome, error_class, error, traceback FROM attempted
), freed AS (
    INSERT INTO windlass_freed (gate, places)
    SELECT e.value, sum(h.holders) FROM (
        SELECT holds, count(*) AS holders FROM held WHERE holds IS NOT NULL GROUP BY holds
    ) h CROSS JOIN {each_held} GROUP BY e.value
), counted AS (
    INSERT INTO windlass_stat_delta (queue, minute, succeeded, failed, retried, runs, wait_us, run_us)
    SELECT queue, {this_minute}, 0, 0, count(*), count(started_at), coalesce(sum(wait_us), 0), coalesce(sum(ended_at - started_at), 0)
    FROM attempted WHERE outcome = 'retried' GROUP BY queue
)
SELECT id, fence FROM held

-- name: applied :rows
SELECT a.job_id, a.fence FROM unnest(:ids::uuid[], :fences::bigint[]) AS i(id, fence)
JOIN windlass_attempt a ON {a.job_id = i.id} AND a.fence = i.fence
WHERE a.outcome NOT IN ('lost', 'canceled') OR a.started_at IS NOT NULL

-- name: orphaned_jobs :rows
SELECT id, fence, crash_count FROM windlass_hot WHERE node = :node AND status = 'RUNNING' ORDER BY id LIMIT 200
FOR UPDATE SKIP LOCKED
