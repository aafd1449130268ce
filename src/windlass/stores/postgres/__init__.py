"""PostgreSQL: its connections, the execution of plans, its own statements and its migrations."""
