-- Differs by need: claims of several nodes must be disjoint without waiting for each other (FOR UPDATE SKIP LOCKED).
--
-- Inside one priority level the order of J3.1 is the order of the index, so the best rows of all lie among the first rows of each
-- level. Read {chunk} of each, rank them together, and stop where a chunk that may go on ends: what comes after it is not known to
-- be next. {chunk} is a literal because a generic plan would guess; rows are found again by ctid, which no planner can get wrong.

-- name: claim :rows
WITH head AS MATERIALIZED (
    SELECT h.place, h.due, h.id, h.nth = {chunk} AS may_go_on,
        p.level + CASE WHEN :boost_us::bigint = 0 THEN 0 ELSE ({now} - h.due) / :boost_us::bigint END AS rank
    FROM unnest(:queues::text[], :levels::smallint[]) AS p(queue, level)
    CROSS JOIN LATERAL (
        SELECT place, due, id, row_number() OVER () AS nth FROM (
            SELECT ctid AS place, due, id FROM windlass_hot
            WHERE queue = p.queue AND priority = p.level AND status = 'PENDING' AND lane IS NULL AND due <= {now}
            ORDER BY due, id LIMIT {chunk} FOR UPDATE SKIP LOCKED
        ) locked
    ) h
    WHERE EXISTS (SELECT 1 FROM windlass_node n WHERE n.id = :node AND n.state = 'alive')
), ranked AS MATERIALIZED (
    SELECT place, may_go_on, row_number() OVER (ORDER BY rank DESC, due, id) AS nth FROM head
), claimed AS (
    UPDATE windlass_hot SET status = 'RUNNING', node = :node, picked_at = {now}, fence = fence + 1
    WHERE ctid = ANY(ARRAY(
        SELECT place FROM ranked
        WHERE nth <= least(:wanted::bigint, (SELECT min(nth) FROM ranked WHERE may_go_on))
    ))
    RETURNING id, fence, queue, target, attempts, crash_count, priority, due, picked_at
)
SELECT c.id::text, c.fence, c.queue, c.target, c.attempts, c.crash_count, c.priority, c.due, c.picked_at, j.args, j.options, j.params, j.tags, j.correlation_id, j.business_key, j.created_at
FROM claimed c LEFT JOIN LATERAL (
    SELECT args, options, params, tags, correlation_id, business_key, created_at FROM windlass_job
    WHERE id = c.id AND octet_length(args) + coalesce(octet_length(params), 0) + coalesce(octet_length(options), 0) <= :small OFFSET 0
) j ON true

-- name: claim_lane :rows
WITH head AS MATERIALIZED (
    SELECT ctid AS place, due, id FROM windlass_hot
    WHERE queue = :queue AND lane = :lane AND priority = :level AND status = 'PENDING' AND lane IS NOT NULL AND due <= {now}
        AND EXISTS (SELECT 1 FROM windlass_node n WHERE n.id = :node AND n.state = 'alive')
    ORDER BY due, id LIMIT {chunk} FOR UPDATE SKIP LOCKED
)
UPDATE windlass_hot SET status = 'RUNNING', node = :node, picked_at = {now}, fence = fence + 1
WHERE ctid = ANY(ARRAY(SELECT place FROM head))
RETURNING id, fence, queue, target, attempts, crash_count, priority, due, picked_at
