"""PostgreSQL: its connections, its way to run plans, its own statements and its migrations."""
