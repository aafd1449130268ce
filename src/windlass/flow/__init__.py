"""What follows jobs that have ended: callbacks, and the jobs of flows."""
