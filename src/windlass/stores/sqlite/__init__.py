"""SQLite: its files and locks, its one writer, its own statements and its migrations."""
