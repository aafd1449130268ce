-- Differs by need: PostgreSQL takes many rows in one statement (unnest of arrays), which is where its speed comes from.
-- Arrays come as text literals built by the dialect: the driver's own list adaptation costs more than the statement.

-- name: ids :fragment
(SELECT unnest(:ids::uuid[]) AS id)

-- name: tell :fragment
SELECT CASE WHEN :tell::text IS NOT NULL THEN pg_notify('windlass_work', :tell::text) END

-- name: tell_of_work :count
{tell}

-- name: insert_job :count
WITH stored AS (
    INSERT INTO windlass_job (id, queue, target, priority, args, options, tags, params, correlation_id, idempotency_key,
        business_key, parent_id, lane, created_at)
    VALUES (:id, :queue, :target, :priority, :args, :options, :tags, :params, :correlation_id, :idempotency_key,
        :business_key, :parent_id, :lane, {now})
), waiting AS (
    INSERT INTO windlass_hot (id, queue, target, lane, status, priority, due, fence, attempts, crash_count, expires)
    VALUES (:id, :queue, :target, :lane, 'PENDING', :priority, coalesce(:due_at::bigint, {now} + :delay_us::bigint), 0, 0, 0,
        coalesce(:expires_at::bigint, {now} + :expires_us::bigint))
)
{tell}

-- name: insert_jobs :count
WITH input AS MATERIALIZED (
    SELECT * FROM unnest(:ids::uuid[], :queues::text[], :targets::text[], :priorities::smallint[], :args::text[],
        :options::text[], :tags::text[], :params::text[], :correlations::text[], :keys::text[], :business_keys::text[],
        :parents::uuid[], :dues::bigint[], :delays::bigint[], :lanes::text[], :expiries::bigint[], :lifetimes::bigint[])
        AS i(id, queue, target, priority, args, options, tags, params, correlation_id, idempotency_key, business_key, parent_id,
            due, delay, lane, expires_at, expires_us)
), stored AS (
    INSERT INTO windlass_job (id, queue, target, priority, args, options, tags, params, correlation_id, idempotency_key,
        business_key, parent_id, lane, created_at)
    SELECT id, queue, target, priority, args, options, tags, params, correlation_id, idempotency_key, business_key, parent_id, lane,
        {now}
    FROM input
), waiting AS (
    INSERT INTO windlass_hot (id, queue, target, lane, status, priority, due, fence, attempts, crash_count, expires)
    SELECT id, queue, target, lane, 'PENDING', priority, coalesce(due, {now} + delay), 0, 0, 0,
        coalesce(expires_at, {now} + expires_us)
    FROM input
)
{tell}

-- name: copy_jobs :count
COPY windlass_job (id, queue, target, priority, args, options, tags, params, correlation_id, idempotency_key, business_key,
    parent_id, lane, created_at) FROM STDIN

-- name: copy_hot :count
COPY windlass_hot (id, queue, target, lane, status, priority, due, fence, attempts, crash_count, expires) FROM STDIN

-- name: find_keys :rows
SELECT idempotency_key, job_id FROM windlass_key WHERE idempotency_key = ANY(:keys::text[])

-- name: find_holders :rows
SELECT k.business_key, k.holder_id, coalesce(h.status, 'RUNNING')
FROM windlass_live_key k LEFT JOIN windlass_hot h ON h.id = k.holder_id
WHERE k.business_key = ANY(:keys::text[])

-- name: insert_keys :count
INSERT INTO windlass_key (idempotency_key, job_id) SELECT * FROM unnest(:keys::text[], :ids::uuid[])
ON CONFLICT (idempotency_key) DO NOTHING

-- name: insert_live_keys :count
INSERT INTO windlass_live_key (business_key, holder_id) SELECT * FROM unnest(:keys::text[], :ids::uuid[])
ON CONFLICT (business_key) DO NOTHING

-- name: insert_tags :count
INSERT INTO windlass_job_tag (tag, job_id) SELECT * FROM unnest(:keys::text[], :ids::uuid[])

-- name: load_payloads :rows
SELECT id, args, options, params, tags, correlation_id, business_key, created_at FROM windlass_job
WHERE id = ANY(:ids::uuid[])

-- name: gone :fragment
gone AS (
    DELETE FROM windlass_hot h USING input i WHERE h.id = i.id AND h.fence = i.fence
    RETURNING h.queue, h.target, h.crash_count, h.node, h.due, h.picked_at, h.holds, i.*
), ended AS (
    INSERT INTO windlass_done (id, queue, target, status, fence, attempts, crash_count, node, due, result, error, error_class,
        reason, picked_at, started_at, finished_at)
    SELECT id, queue, target, status, fence, attempts, crash_count, node, due, result, error, error_class, reason, picked_at,
        started_at, ended_at
    FROM gone
), remembered AS (
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

-- name: reopen :rows
WITH input AS MATERIALIZED (
    SELECT * FROM unnest(:ids::uuid[], :fences::bigint[], :outcomes::text[], :numbers::int[], :attempts::int[],
        :errors::text[], :error_classes::text[], :tracebacks::text[], :started::bigint[], :ended::bigint[], :waits::bigint[],
        :delays::bigint[], :lanes::text[])
        AS i(id, fence, outcome, number, attempts, error, error_class, traceback, started_at, ended_at, wait_us, delay, lane)
), held AS MATERIALIZED (
    SELECT h.id, h.fence, h.queue, h.node, h.picked_at, h.holds FROM windlass_hot h JOIN input i ON h.id = i.id AND h.fence = i.fence
    ORDER BY h.id FOR UPDATE OF h
), back AS (
    UPDATE windlass_hot h SET status = 'PENDING', fence = CASE WHEN h.fence < 4611686018427387904 THEN h.fence + 1 ELSE 4611686018427387904 END, attempts = i.attempts, node = NULL, picked_at = NULL,
        holds = NULL, due = CASE WHEN i.delay IS NULL THEN h.due ELSE {now} + i.delay END, lane = coalesce(i.lane, h.lane),
        expires = CASE WHEN i.started_at IS NULL THEN h.expires END
    FROM held JOIN input i ON i.id = held.id AND i.fence = held.fence WHERE h.id = held.id AND h.fence = held.fence
), remembered AS (
    INSERT INTO windlass_attempt (job_id, fence, number, node, picked_at, started_at, ended_at, wait_us, outcome, error_class,
        error, traceback)
    SELECT held.id, held.fence, i.number, held.node, held.picked_at, i.started_at, i.ended_at, i.wait_us, i.outcome,
        i.error_class, i.error, i.traceback
    FROM held JOIN input i ON i.id = held.id AND i.fence = held.fence
), freed AS (
    INSERT INTO windlass_freed (gate, places)
    SELECT e.value, sum(h.holders) FROM (
        SELECT holds, count(*) AS holders FROM held WHERE holds IS NOT NULL GROUP BY holds
    ) h CROSS JOIN {each_held} GROUP BY e.value
), counted AS (
    INSERT INTO windlass_stat_delta (queue, minute, succeeded, failed, retried, runs, wait_us, run_us)
    SELECT held.queue, {this_minute}, 0, 0, count(*), count(i.started_at), coalesce(sum(i.wait_us), 0),
        coalesce(sum(i.ended_at - i.started_at), 0)
    FROM held JOIN input i ON i.id = held.id AND i.fence = held.fence WHERE i.outcome = 'retried' GROUP BY held.queue
)
SELECT id, fence FROM held

-- name: applied :rows
SELECT a.job_id, a.fence FROM windlass_attempt a
JOIN unnest(:ids::uuid[], :fences::bigint[]) AS i(id, fence) ON a.job_id = i.id AND a.fence = i.fence
WHERE a.outcome NOT IN ('lost', 'canceled') OR a.started_at IS NOT NULL

-- name: outcomes :rows
SELECT j.id, coalesce(h.status, d.status), j.target, d.result, d.error, d.error_class, d.reason
FROM windlass_job j
LEFT JOIN windlass_hot h ON h.id = j.id
LEFT JOIN windlass_done d ON d.id = j.id
WHERE j.id = ANY(:ids::uuid[])

-- name: orphaned_jobs :rows
SELECT id, fence, crash_count FROM windlass_hot WHERE node = :node AND status = 'RUNNING' ORDER BY id LIMIT 200
FOR UPDATE SKIP LOCKED
