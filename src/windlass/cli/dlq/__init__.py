"""`windlass dlq`: dead letters listed, shown, re-driven and purged, one module for each command."""
