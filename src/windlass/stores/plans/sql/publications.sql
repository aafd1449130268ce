-- Publications: subscriptions and hand-offs. A plan that changes hand-offs of a subscription and counts its executions locks the row of
-- the subscription first.

-- name: subscription_rows :table
publication text, subscriber text, kind text, config text, max_in_flight integer

-- name: save_subscriptions :count
INSERT INTO windlass_subscription (publication, subscriber, kind, config, paused, max_in_flight)
SELECT publication, subscriber, kind, config, 0, max_in_flight FROM {subscription_rows} r WHERE true
ON CONFLICT (publication, subscriber) DO UPDATE SET kind = excluded.kind, config = excluded.config, max_in_flight = excluded.max_in_flight

-- The subscriptions of a node's pipelines; the plan drops those that are no longer declared.
-- name: subscriptions_of_pipelines :rows
SELECT publication, subscriber FROM windlass_subscription WHERE kind = 'pipeline' AND subscriber {in_names}

-- name: drop_subscription :count
DELETE FROM windlass_subscription WHERE publication = :publication AND subscriber = :subscriber

-- name: subscriptions_to :rows
SELECT publication, subscriber, kind, paused, max_in_flight FROM windlass_subscription WHERE publication {in_names}
ORDER BY publication, subscriber

-- name: subscriptions :rows
SELECT publication, subscriber, kind, paused, max_in_flight FROM windlass_subscription ORDER BY publication, subscriber

-- name: lock_subscription :row
SELECT s.kind, s.paused, s.max_in_flight FROM windlass_subscription s
WHERE s.publication = :publication AND s.subscriber = :subscriber {lock_s}

-- name: pause_subscription :count
UPDATE windlass_subscription SET paused = :paused WHERE publication = :publication AND subscriber = :subscriber

-- The open executions of a pipeline, counted up to a limit.
-- name: open_of_pipeline :row
SELECT count(*) FROM (SELECT 1 FROM windlass_execution e WHERE e.status = 'OPEN' AND e.pipeline = :pipeline LIMIT {most}) o

-- name: handoff_rows :bulk
id id, publication text, subscriber text, tenant text, key text, seen_key text, source_id id, item text, correlation_id text,
payload text, payload_hash text, status text, attempts integer, delay_us integer, reason text, execution_id id

-- name: insert_handoffs :rows
INSERT INTO windlass_handoff (id, publication, subscriber, tenant, key, seen_key, source_id, item, correlation_id, payload,
    payload_hash, status, attempts, due, reason, execution_id, created_at, settled_at)
SELECT id, publication, subscriber, tenant, key, seen_key, source_id, item, correlation_id, payload, payload_hash, status, attempts,
    CASE WHEN status = 'WAITING' THEN {now} + delay_us END, reason, execution_id, {now}, CASE WHEN status <> 'WAITING' THEN {now} END
FROM {handoff_rows} r WHERE true
ON CONFLICT (publication, subscriber, tenant, seen_key) WHERE seen_key IS NOT NULL DO NOTHING
RETURNING id

-- name: wanted_handoffs :table
tenant text, key text

-- name: holders_of_handoffs :rows
SELECT h.tenant, h.seen_key, h.payload_hash, h.execution_id FROM {wanted_handoffs} w CROSS JOIN windlass_handoff h
WHERE h.publication = :publication AND h.subscriber = :subscriber AND h.tenant = w.tenant AND h.seen_key = w.key
    AND h.seen_key IS NOT NULL

-- name: handoff_counts :table
publication text, subscriber text, admitted integer, suppressed integer, rejected integer, failed integer, wait_us integer,
delayed integer, drained integer

-- name: insert_handoff_counts :count
INSERT INTO windlass_handoff_count (publication, subscriber, minute, folded, admitted, suppressed, rejected, failed, wait_us, delayed,
    drained)
SELECT publication, subscriber, {this_minute}, 0, admitted, suppressed, rejected, failed, wait_us, delayed, drained FROM {handoff_counts} r

-- The first waiting hand-off of a subscription.
-- name: first_waiting :row
SELECT h.due, {now} FROM windlass_handoff h
WHERE h.status = 'WAITING' AND h.publication = :publication AND h.subscriber = :subscriber ORDER BY h.due, h.id LIMIT 1

-- name: due_handoffs :rows
SELECT h.id, h.tenant, h.key, h.correlation_id, h.payload, h.payload_hash, h.attempts FROM windlass_handoff h
WHERE h.status = 'WAITING' AND h.publication = :publication AND h.subscriber = :subscriber AND h.due <= {now}
ORDER BY h.due, h.id LIMIT {window}

-- For a hand-off whose id is known: written so that the planner cannot use the index of all waiting hand-offs.
-- name: still_waits :fragment
coalesce(windlass_handoff.status, '') = 'WAITING'

-- name: admitted_rows :table
id id, execution_id id

-- name: admit_handoffs :rows
UPDATE windlass_handoff SET status = 'ADMITTED', execution_id = a.execution_id, payload = NULL, due = NULL, reason = NULL,
    settled_at = {now}
FROM {admitted_rows} a WHERE {windlass_handoff.id = a.id} AND {still_waits}
RETURNING windlass_handoff.id, windlass_handoff.settled_at - windlass_handoff.created_at

-- name: refused_rows :table
id id, delay_us integer, reason text

-- name: refuse_handoffs :count
UPDATE windlass_handoff SET attempts = attempts + 1, due = {now} + r.delay_us, reason = r.reason
FROM {refused_rows} r WHERE {windlass_handoff.id = r.id} AND {still_waits}

-- name: hurry_handoffs :count
UPDATE windlass_handoff SET due = {now} WHERE id {in_ids} AND {still_waits}

-- The next subscription that has waiting hand-offs: one index lookup, however many hand-offs each has.
-- name: next_waiting_subscription :row
SELECT h.publication, h.subscriber FROM windlass_handoff h
WHERE h.status = 'WAITING' AND (h.publication, h.subscriber) > (:publication, :subscriber)
ORDER BY h.publication, h.subscriber LIMIT 1

-- name: waiting_of_subscription :row
SELECT count(*), min(w.created_at), sum(CASE WHEN w.reason IS NOT NULL THEN 1 ELSE 0 END), {now} FROM (
    SELECT h.created_at, h.reason FROM windlass_handoff h
    WHERE h.status = 'WAITING' AND h.publication = :publication AND h.subscriber = :subscriber
    ORDER BY h.publication, h.subscriber, h.due, h.id LIMIT {window}
) w

-- name: handoff_view :fragment
SELECT h.id, h.publication, h.subscriber, h.tenant, h.key, h.source_id, h.item, h.correlation_id, h.status, h.attempts, h.due,
    h.reason, h.execution_id, h.created_at, h.settled_at FROM windlass_handoff h

-- name: find_handoffs :rows
{handoff_view} WHERE h.id < :before ORDER BY h.id DESC LIMIT {window}

-- name: find_failing_handoffs :rows
{handoff_view} WHERE h.reason IS NOT NULL AND h.id < :before ORDER BY h.id DESC LIMIT {window}

-- Hand-offs that were refused and wait for another attempt.
-- name: find_refused_handoffs :rows
{handoff_view} WHERE h.status = 'WAITING' AND h.reason IS NOT NULL AND h.id < :before ORDER BY h.id DESC LIMIT {window}

-- Hand-offs that an external destination has permanently refused, and that still have their payload, so that they can be retried.
-- name: find_given_up_handoffs :rows
{handoff_view} WHERE h.status = 'REJECTED' AND h.payload IS NOT NULL AND h.id < :before ORDER BY h.id DESC LIMIT {window}

-- name: counted_handoffs :rows
SELECT publication, subscriber, CAST(sum(admitted) AS {integer}), CAST(sum(suppressed) AS {integer}), CAST(sum(rejected) AS {integer}),
    CAST(sum(failed) AS {integer}), CAST(sum(wait_us) AS {integer}), CAST(sum(delayed) AS {integer}), CAST(sum(drained) AS {integer})
FROM windlass_handoff_count
WHERE folded IN (0, 1) AND minute > {this_minute} - :since AND minute <= {this_minute} - :until
GROUP BY publication, subscriber

-- name: suppressed_since :row
SELECT CAST(coalesce(sum(suppressed), 0) AS {integer}) FROM windlass_handoff_count WHERE folded IN (0, 1) AND minute >= :minute

-- name: take_handoff_counts :rows
DELETE FROM windlass_handoff_count WHERE {row_id} IN (
    SELECT {row_id} FROM windlass_handoff_count WHERE folded = 0 ORDER BY minute LIMIT {chunk})
RETURNING publication, subscriber, minute, admitted, suppressed, rejected, failed, wait_us, delayed, drained

-- name: folded_counts :table
publication text, subscriber text, minute integer, admitted integer, suppressed integer, rejected integer, failed integer, wait_us integer,
delayed integer, drained integer

-- name: insert_folded_counts :count
INSERT INTO windlass_handoff_count (publication, subscriber, minute, folded, admitted, suppressed, rejected, failed, wait_us, delayed,
    drained)
SELECT publication, subscriber, minute, 1, admitted, suppressed, rejected, failed, wait_us, delayed, drained FROM {folded_counts} r

-- name: drop_old_handoff_counts :count
DELETE FROM windlass_handoff_count WHERE {row_id} IN (
    SELECT {row_id} FROM windlass_handoff_count WHERE folded = 1 AND minute < {this_minute} - :keep LIMIT {chunk})

-- name: old_handoffs :rows
SELECT h.id, h.created_at, CASE WHEN h.settled_at < {now} - :older_than_us THEN 1 ELSE 0 END,
    CASE WHEN h.created_at < {now} - :older_than_us THEN 1 ELSE 0 END FROM windlass_handoff h
WHERE h.id > :id ORDER BY h.id LIMIT {window}

-- name: purge_handoffs :count
DELETE FROM windlass_handoff WHERE id {in_ids}
