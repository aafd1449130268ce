-- Differs by need: rows to delete are found by their physical position (ctid). For an IN over keys the planner could compare every row of
-- the table with them, if statistics say that the table has few rows.

-- name: purge_items :count
DELETE FROM windlass_item WHERE ctid = ANY(ARRAY(
    SELECT i.ctid FROM windlass_item i WHERE i.execution_id {in_ids} LIMIT {window}))

-- name: purge_transitions :count
DELETE FROM windlass_transition WHERE ctid = ANY(ARRAY(
    SELECT t.ctid FROM windlass_transition t WHERE t.execution_id {in_ids} LIMIT {window}))

-- name: forget_ticks :count
DELETE FROM windlass_tick WHERE ctid = ANY(ARRAY(
    SELECT t.ctid FROM windlass_tick t
    WHERE t.tick > -144115188075855872 AND t.tick < {now} - :age_us AND (SELECT h.id FROM windlass_hot h WHERE h.id = t.job_id) IS NULL
    ORDER BY t.tick LIMIT {most}))

-- name: forget_groups :count
DELETE FROM windlass_dead_letter_group WHERE count <= 0 AND ctid = ANY(ARRAY(
    SELECT ctid FROM windlass_dead_letter_group
    WHERE count <= 0 AND last_at <= {now} - :older_than_us ORDER BY count, fingerprint LIMIT {window}))

-- name: forget_tags :count
DELETE FROM windlass_job_tag t USING {keys} k WHERE {t.tag = k.key} AND t.job_id = k.id
