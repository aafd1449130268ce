"""What follows jobs that have ended: callbacks."""
