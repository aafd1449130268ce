-- How long after their due times this node has claimed jobs lately: claims by bucket, as JSON, for `health`.
ALTER TABLE windlass_node ADD COLUMN lag text;
