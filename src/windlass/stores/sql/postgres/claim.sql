-- Differs by need: claims of several nodes must be disjoint without waiting for each other (FOR UPDATE SKIP LOCKED).
--
-- Inside one priority level the order of J3.1 is the order of the index, so the best rows of all lie among the first rows of each
-- level. Read {chunk} of each, rank them together, and stop where a chunk that may go on ends: what comes after it is not known to
-- be next. {chunk} is a literal because a generic plan would guess; rows are found again by ctid, which no planner can get wrong.

-- name: claim :rows
WITH pair AS MATERIALIZED (
    SELECT p.name AS queue, p.level FROM unnest(:queues::text[], :levels::smallint[]) AS p(name, level) WHERE NOT {limited}
), head AS MATERIALIZED (
    SELECT h.place, h.due, h.id, h.nth = {chunk} AS may_go_on,
        p.level + CASE WHEN :boost_us::bigint = 0 THEN 0 ELSE ({now} - h.due) / :boost_us::bigint END AS rank
    FROM pair p CROSS JOIN LATERAL (
        SELECT place, due, id, row_number() OVER () AS nth FROM (
            SELECT ctid AS place, due, id FROM windlass_hot
            WHERE queue = p.queue AND priority = p.level AND status = 'PENDING' AND lane IS NULL AND due <= {now}
            ORDER BY due, id LIMIT {chunk} FOR UPDATE SKIP LOCKED
        ) locked
    ) h
    WHERE {alive}
), ranked AS MATERIALIZED (
    SELECT place, may_go_on, row_number() OVER (ORDER BY rank DESC, due, id) AS nth FROM head
), claimed AS (
    UPDATE windlass_hot SET status = 'RUNNING', node = :node, picked_at = {now}, fence = fence + 1
    WHERE ctid = ANY(ARRAY(
        SELECT place FROM ranked
        WHERE nth <= least(:wanted::bigint, (SELECT min(nth) FROM ranked WHERE may_go_on))
    ))
    RETURNING {claimed_columns}
)
{with_payloads}

-- One level of one queue, which is what a worker mostly asks for: the order of the index is all there is to it. With `holds` the
-- queue's limit, if it has one, is counted.
-- name: claim_level :rows
WITH head AS MATERIALIZED (
    SELECT ctid AS place FROM windlass_hot
    WHERE queue = :queue AND priority = :level::smallint AND status = 'PENDING' AND lane IS NULL AND due <= {now}
        AND {alive} AND (:holds::text IS NOT NULL OR NOT EXISTS (SELECT 1 FROM (SELECT :queue::text AS name) p WHERE {limited}))
    ORDER BY due, id LIMIT {chunk} FOR UPDATE SKIP LOCKED
), claimed AS (
    UPDATE windlass_hot SET status = 'RUNNING', node = :node, picked_at = {now}, fence = fence + 1, holds = :holds::text
    WHERE ctid = ANY(ARRAY(SELECT place FROM head LIMIT :wanted))
    RETURNING {claimed_columns}
)
{with_payloads}

-- Queues with a limit: so many rows of each, and no more, in the same order.
-- name: claim_limited :rows
WITH pair AS MATERIALIZED (
    SELECT p.name AS queue, p.level, p.places, p.holds
    FROM unnest(:queues::text[], :levels::smallint[], :places::int[], :holds::text[]) AS p(name, level, places, holds)
    WHERE p.holds IS NOT NULL OR NOT {limited}
), head AS MATERIALIZED (
    SELECT h.place, h.due, h.id, p.queue, p.places, h.nth = {chunk} AS may_go_on,
        p.level + CASE WHEN :boost_us::bigint = 0 THEN 0 ELSE ({now} - h.due) / :boost_us::bigint END AS rank
    FROM pair p CROSS JOIN LATERAL (
        SELECT place, due, id, row_number() OVER () AS nth FROM (
            SELECT ctid AS place, due, id FROM windlass_hot
            WHERE queue = p.queue AND priority = p.level AND status = 'PENDING' AND lane IS NULL AND due <= {now}
            ORDER BY due, id LIMIT {chunk} FOR UPDATE SKIP LOCKED
        ) locked
    ) h
    WHERE {alive}
), of_queue AS MATERIALIZED (
    SELECT *, row_number() OVER (PARTITION BY queue ORDER BY rank DESC, due, id) AS nth_of_queue FROM head
), ranked AS MATERIALIZED (
    SELECT place, may_go_on, row_number() OVER (ORDER BY rank DESC, due, id) AS nth FROM of_queue
    WHERE places IS NULL OR nth_of_queue <= places
), claimed AS (
    UPDATE windlass_hot SET status = 'RUNNING', node = :node, picked_at = {now}, fence = fence + 1,
        holds = (SELECT p.holds FROM pair p WHERE p.queue = windlass_hot.queue LIMIT 1)
    WHERE ctid = ANY(ARRAY(
        SELECT place FROM ranked
        WHERE nth <= least(:wanted::bigint, (SELECT min(nth) FROM ranked WHERE may_go_on))
    ))
    RETURNING {claimed_columns}
)
{with_payloads}

-- Lanes: of each so many rows as its gates let through, in the exact order within the lane. Where that is more than is wanted, the
-- first of each lane come before the second.
-- name: claim_lanes :rows
WITH way AS MATERIALIZED (
    SELECT w.* FROM unnest(:queues::text[], :lanes::text[], :places::int[], :holds::text[]) AS w(queue, lane, places, holds)
    CROSS JOIN LATERAL (SELECT w.queue AS name) p WHERE w.holds LIKE '%"queue:%' OR NOT {limited}
), head AS MATERIALIZED (
    SELECT h.place, w.places, r.rank, h.due, h.id, row_number() OVER (PARTITION BY w.queue, w.lane ORDER BY r.rank DESC, h.due, h.id) AS nth
    FROM way w CROSS JOIN generate_series(0, 9) AS l(level) CROSS JOIN LATERAL (
        SELECT ctid AS place, due, id FROM windlass_hot
        WHERE queue = w.queue AND lane = w.lane AND priority = l.level::smallint AND status = 'PENDING' AND lane IS NOT NULL
            AND due <= {now}
        ORDER BY due, id LIMIT {chunk} FOR UPDATE SKIP LOCKED
    ) h CROSS JOIN LATERAL (
        SELECT l.level + CASE WHEN :boost_us::bigint = 0 THEN 0 ELSE ({now} - h.due) / :boost_us::bigint END AS rank
    ) r
    WHERE {alive}
), claimed AS (
    UPDATE windlass_hot SET status = 'RUNNING', node = :node, picked_at = {now}, fence = fence + 1,
        holds = (SELECT w.holds FROM way w WHERE w.queue = windlass_hot.queue AND w.lane = windlass_hot.lane)
    WHERE ctid = ANY(ARRAY(SELECT place FROM head WHERE nth <= places ORDER BY nth, rank DESC, due, id LIMIT :wanted))
    RETURNING {claimed_columns}
)
{with_payloads}

-- Lanes that have jobs waiting, from one on, and when the first job of each level is due. Each is found by a step in the
-- index.
-- name: waiting_lanes :rows
WITH RECURSIVE seen (queue, lane, nth) AS (
    (
        SELECT queue, lane, 1 FROM windlass_hot
        WHERE status = 'PENDING' AND lane IS NOT NULL AND due IS NOT NULL AND (queue, lane) > (:queue::text, :lane::text)
        ORDER BY queue, lane LIMIT 1
    )
    UNION ALL
    SELECT n.queue, n.lane, s.nth + 1 FROM seen s CROSS JOIN LATERAL (
        SELECT h.queue, h.lane FROM windlass_hot h
        WHERE h.status = 'PENDING' AND h.lane IS NOT NULL AND h.due IS NOT NULL AND (h.queue, h.lane) > (s.queue, s.lane)
        ORDER BY h.queue, h.lane LIMIT 1
    ) n WHERE s.nth < {window}
)
SELECT s.queue, s.lane, l.level, d.due
FROM seen s CROSS JOIN generate_series(0, 9) AS l(level) CROSS JOIN LATERAL (
    SELECT h.due FROM windlass_hot h
    WHERE h.queue = s.queue AND h.lane = s.lane AND h.priority = l.level::smallint AND h.status = 'PENDING'
        AND h.lane IS NOT NULL AND h.due IS NOT NULL
    ORDER BY h.due, h.id LIMIT 1
) d
ORDER BY s.nth, l.level

-- name: alive :fragment
EXISTS (SELECT 1 FROM windlass_node n WHERE n.id = :node AND n.state = 'alive')

-- name: limited :fragment
EXISTS (SELECT 1 FROM windlass_gate g WHERE g.name = 'queue:' || p.name AND (g.cap IS NOT NULL OR g.rate IS NOT NULL))

-- name: claimed_columns :fragment
id, fence, queue, target, attempts, crash_count, priority, due, picked_at, lane, holds, expires

-- name: with_payloads :fragment
SELECT c.id::text, c.fence, c.queue, c.target, c.attempts, c.crash_count, c.priority, c.due, c.picked_at, c.lane, c.holds,
    c.expires, j.args, j.options, j.params, j.tags, j.correlation_id, j.business_key, j.created_at
FROM claimed c LEFT JOIN LATERAL (
    SELECT args, options, params, tags, correlation_id, business_key, created_at FROM windlass_job
    WHERE id = c.id AND octet_length(args) + coalesce(octet_length(params), 0) + coalesce(octet_length(options), 0) <= :small OFFSET 0
) j ON true
