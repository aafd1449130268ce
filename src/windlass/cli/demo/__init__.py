"""`windlass demo`: a small shop on SQLite, in scenes; each is checked against the store."""
