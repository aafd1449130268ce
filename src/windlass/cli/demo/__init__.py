"""`windlass demo`: a small shop on SQLite, told in scenes; each is checked against the store."""
