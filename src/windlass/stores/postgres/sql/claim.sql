-- Differs by need: claims of several nodes must be disjoint without waiting for each other (FOR UPDATE SKIP LOCKED).
--
-- Within one priority level the order of J3.1 is the order of the index, so the best rows are among the first rows of each level. Read
-- {chunk} of each, rank them together, and stop at the end of the first incomplete chunk: beyond it the order is not known. {chunk} is a
-- literal because a generic plan would guess a number; rows are updated by ctid, for which there is only one plan. Each level is read from
-- a given position on: entries of jobs that have ended may stand before it, as long as some transaction may see them. Levels that are
-- due but not read are given by their best heads: only rows that rank before all of these are taken.

-- name: claim :rows
WITH pair AS MATERIALIZED (
    SELECT p.name AS queue, p.level, p.from_due, p.from_id
    FROM unnest(:queues::text[], :levels::smallint[], :from_dues::bigint[], :from_ids::uuid[]) AS p(name, level, from_due, from_id)
    WHERE NOT {limited}
), head AS MATERIALIZED (
    SELECT h.tid, h.due, h.id, h.nth = {chunk} AS may_go_on,
        p.level + CASE WHEN :boost_us::bigint = 0 THEN 0 ELSE ({now} - greatest(h.due, 0)) / :boost_us::bigint END AS rank
    FROM pair p CROSS JOIN LATERAL (
        SELECT tid, due, id, row_number() OVER () AS nth FROM (
            SELECT ctid AS tid, due, id FROM windlass_hot
            WHERE queue = p.queue AND priority = p.level AND status = 'PENDING' AND lane IS NULL AND due <= {now}
                AND (due, id) >= (p.from_due, p.from_id)
            ORDER BY due, id LIMIT {chunk} FOR UPDATE SKIP LOCKED
        ) locked
    ) h
    WHERE {alive}
), ranked AS MATERIALIZED (
    SELECT tid, may_go_on, row_number() OVER (ORDER BY rank DESC, due, id) AS nth FROM head WHERE {before_others}
), claimed AS (
    UPDATE windlass_hot SET status = 'RUNNING', node = :node, picked_at = {now}, fence = {next_fence}
    WHERE ctid = ANY(ARRAY(
        SELECT tid FROM ranked
        WHERE nth <= least(:wanted::bigint, (SELECT min(nth) FROM ranked WHERE may_go_on))
    ))
    RETURNING id, {claim_columns}
)
{with_payloads}

-- One level of one queue, the most frequent claim: the order of the index is the order of J3.1. If `holds` is given, the queue's limit
-- is counted there; otherwise a queue with a limit gives nothing.
-- name: claim_level :rows
WITH head AS MATERIALIZED (
    SELECT ctid AS tid FROM windlass_hot
    WHERE queue = :queue AND priority = :level::smallint AND status = 'PENDING' AND lane IS NULL AND due <= {now}
        AND (due, id) >= (:from_due::bigint, :from_id::uuid) AND {alive} AND (:holds::text IS NOT NULL OR NOT EXISTS (SELECT 1 FROM (SELECT :queue::text AS name) p WHERE {limited}))
    ORDER BY due, id LIMIT {chunk} FOR UPDATE SKIP LOCKED
), {claim_head}

-- The same for one level of a lane.
-- name: claim_lane_level :rows
WITH head AS MATERIALIZED (
    SELECT ctid AS tid FROM windlass_hot
    WHERE queue = :queue AND lane = :lane AND priority = :level::smallint AND status = 'PENDING' AND lane IS NOT NULL AND due <= {now}
        AND {alive} AND (:holds::text LIKE '["queue:%' OR NOT EXISTS (SELECT 1 FROM (SELECT :queue::text AS name) p WHERE {limited}))
    ORDER BY due, id LIMIT {chunk} FOR UPDATE SKIP LOCKED
), {claim_head}

-- name: claim_head :fragment
claimed AS (
    UPDATE windlass_hot SET status = 'RUNNING', node = :node, picked_at = {now}, fence = {next_fence}, holds = :holds::text
    WHERE ctid = ANY(ARRAY(SELECT tid FROM head LIMIT :wanted))
    RETURNING id, {claim_columns}
)
{with_payloads}

-- Queues and lanes behind gates, together with queues that have none, in one order. A gate that may run short lets the first jobs of all
-- its queues and lanes pass, up to its free permits; further jobs are skipped and do not count as the end of a chunk. `holds` gives the
-- permits of a claimed job by queue and lane. A queue that has a limit which is not in `holds` gives nothing. No more rows are locked
-- than a gate has permits: the literal LIMIT is for the planner, the other one stops the scan.
-- name: claim_gated :rows
WITH source AS MATERIALIZED (
    SELECT s.* FROM unnest(:queues::text[], :levels::smallint[], :from_dues::bigint[], :from_ids::uuid[], :lanes::text[],
        :gates::text[], :permits::int[]) AS s(queue, level, from_due, from_id, lane, gate, permits)
    CROSS JOIN LATERAL (SELECT s.queue AS name) p
    WHERE :holds::jsonb ->> concat(s.queue, ' ', s.lane) LIKE '["queue:%' OR NOT {limited}
), head AS MATERIALIZED (
    SELECT h.tid, h.due, h.id, s.gate, s.permits, h.nth = {chunk} AS may_go_on,
        s.level + CASE WHEN :boost_us::bigint = 0 THEN 0 ELSE ({now} - greatest(h.due, 0)) / :boost_us::bigint END AS rank
    FROM source s CROSS JOIN LATERAL (
        (
            SELECT tid, due, id, row_number() OVER () AS nth FROM (
                SELECT ctid AS tid, due, id FROM windlass_hot
                WHERE s.lane IS NULL AND queue = s.queue AND priority = s.level AND status = 'PENDING' AND lane IS NULL AND due <= {now}
                    AND (due, id) >= (s.from_due, s.from_id)
                ORDER BY due, id LIMIT {chunk} FOR UPDATE SKIP LOCKED
            ) plain LIMIT s.permits
        )
        UNION ALL
        (
            SELECT tid, due, id, row_number() OVER () AS nth FROM (
                SELECT ctid AS tid, due, id FROM windlass_hot
                WHERE queue = s.queue AND lane = s.lane AND priority = s.level AND status = 'PENDING' AND lane IS NOT NULL AND due <= {now}
                ORDER BY due, id LIMIT {chunk} FOR UPDATE SKIP LOCKED
            ) in_lane LIMIT s.permits
        )
    ) h
    WHERE {alive}
), of_gate AS MATERIALIZED (
    SELECT *, row_number() OVER (PARTITION BY gate ORDER BY rank DESC, due, id) AS nth_of_gate FROM head WHERE {before_others}
), ranked AS MATERIALIZED (
    SELECT tid, may_go_on AND (permits IS NULL OR nth_of_gate < permits) AS may_go_on,
        row_number() OVER (ORDER BY rank DESC, due, id) AS nth
    FROM of_gate WHERE permits IS NULL OR nth_of_gate <= permits
), claimed AS (
    UPDATE windlass_hot SET status = 'RUNNING', node = :node, picked_at = {now}, fence = {next_fence},
        holds = :holds::jsonb ->> concat(queue, ' ', lane)
    WHERE ctid = ANY(ARRAY(
        SELECT tid FROM ranked
        WHERE nth <= least(:wanted::bigint, (SELECT min(nth) FROM ranked WHERE may_go_on))
    ))
    RETURNING id, {claim_columns}
)
{with_payloads}

-- Lanes with waiting jobs, after a given one, and when the first job of each level is due. Each lane is found by one index lookup.
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

-- name: before_others :fragment
rank > coalesce((
    SELECT max(o.level + CASE WHEN :boost_us::bigint = 0 THEN 0 ELSE ({now} - greatest(o.due, 0)) / :boost_us::bigint END)
    FROM unnest(:other_levels::smallint[], :other_dues::bigint[]) AS o(level, due)
), -1)

-- name: limited :fragment
EXISTS (SELECT 1 FROM windlass_gate g WHERE g.name = 'queue:' || p.name AND (g.cap IS NOT NULL OR g.rate IS NOT NULL))

-- name: with_payloads :fragment
SELECT c.id::text, {c.claim_columns}, {j.payload_columns}
FROM claimed c LEFT JOIN LATERAL (
    SELECT {payload_columns} FROM windlass_job
    WHERE id = c.id AND octet_length(args) + coalesce(octet_length(params), 0) + coalesce(octet_length(options), 0) <= :small OFFSET 0
) j ON true
