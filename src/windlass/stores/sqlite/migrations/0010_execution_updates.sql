-- On PostgreSQL: room in each page for new versions of executions. SQLite writes rows in place.
SELECT 1;
