"""What keeps a cluster healthy: heartbeat, and recovery of what lost nodes leave behind."""
