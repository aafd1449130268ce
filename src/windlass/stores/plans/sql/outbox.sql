-- Deliveries to destinations outside of the database. A row is written in the transaction of the change that it reports, then read and
-- settled under the lease of its destination. Each write contains the number of attempts that was read, so that it takes effect only once.

-- name: outbox_rows :table
id id, channel text, about text, destination text, name text, tenant text, correlation_id text, payload text

-- name: insert_outbox :count
INSERT INTO windlass_outbox (id, channel, about, destination, name, tenant, correlation_id, payload, status, attempts, due, created_at)
SELECT id, channel, about, destination, name, tenant, correlation_id, payload, 'WAITING', 0, {now}, {now}
FROM {outbox_rows} r WHERE true ON CONFLICT (channel, about) DO NOTHING

-- name: next_outbox_due :row
SELECT o.due - {now} FROM windlass_outbox o WHERE o.destination = :destination AND o.status = 'WAITING' ORDER BY o.due, o.id LIMIT 1

-- name: due_outbox :rows
SELECT o.id, o.name, o.about, o.tenant, o.correlation_id, o.payload, o.attempts, o.created_at FROM windlass_outbox o
WHERE o.destination = :destination AND o.status = 'WAITING' AND o.due <= {now} ORDER BY o.due, o.id LIMIT {most}

-- name: latest_due_outbox :rows
SELECT o.id, o.name, o.about, o.tenant, o.correlation_id, o.payload, o.attempts, o.created_at FROM windlass_outbox o
WHERE o.destination = :destination AND o.status = 'WAITING' AND o.due <= {now} ORDER BY o.due DESC, o.id DESC LIMIT {most}

-- name: settled_deliveries :table
id id, attempts integer, delay_us integer, reason text

-- For a row whose id is known: written so that the planner cannot use the index of all waiting rows.
-- name: still_in_outbox :fragment
coalesce(windlass_outbox.status, '') = 'WAITING'

-- name: forget_delivered :count
DELETE FROM windlass_outbox WHERE id {in_ids} AND {still_in_outbox}
AND (id, attempts) IN (SELECT r.id, r.attempts FROM {settled_deliveries} r)

-- name: postpone_outbox :count
UPDATE windlass_outbox SET attempts = r.attempts + 1, due = {now} + r.delay_us, error = r.reason
FROM {settled_deliveries} r
WHERE {windlass_outbox.id = r.id} AND windlass_outbox.attempts = r.attempts AND {still_in_outbox}

-- name: refuse_outbox :count
UPDATE windlass_outbox SET status = 'REJECTED', attempts = r.attempts + 1, error = r.reason, settled_at = {now}
FROM {settled_deliveries} r
WHERE {windlass_outbox.id = r.id} AND windlass_outbox.attempts = r.attempts AND {still_in_outbox}

-- name: next_outbox_destination :row
SELECT o.destination FROM windlass_outbox o WHERE o.status = 'WAITING' AND o.destination > :destination ORDER BY o.destination LIMIT 1

-- name: outbox_backlog :rows
SELECT o.attempts, o.created_at, o.due, {now} FROM windlass_outbox o
WHERE o.destination = :destination AND o.status = 'WAITING' ORDER BY o.due, o.id LIMIT {most}

-- name: old_outbox :rows
SELECT o.id, o.settled_at FROM windlass_outbox o
WHERE o.status = 'REJECTED' AND o.settled_at <= {now} - :older_than_us ORDER BY o.settled_at, o.id LIMIT {window}

-- name: purge_outbox :count
DELETE FROM windlass_outbox WHERE id {in_ids}
