-- The rhythm of a duty: when it was first heard of, and when it was last done to the end, by whichever node.
ALTER TABLE windlass_lease ADD COLUMN since bigint NOT NULL DEFAULT 0;
ALTER TABLE windlass_lease ADD COLUMN passed_at bigint;

-- Looking into the archive as into what is not archived yet: by business key, and for the few that did not succeed.
ALTER TABLE windlass_archive ADD COLUMN business_key text;
CREATE INDEX windlass_archive_business_key ON windlass_archive (business_key, id) WHERE business_key IS NOT NULL;
CREATE INDEX windlass_archive_status ON windlass_archive (status, id) WHERE status <> 'SUCCEEDED';
